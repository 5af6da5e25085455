-- A fixed number of slots, each a key: takes the first that is free.
for index, value in pairs(redis.call('mget', unpack(KEYS))) do
  if not value then
    redis.call('set', KEYS[index], ARGV[2], 'EX', ARGV[3])
    return ARGV[1] .. index
  elseif value == ARGV[2] and ARGV[4] == 'release' then
    redis.call('del', KEYS[index])
    return -index
  end
end
local free = redis.call('exists', unpack(KEYS)) < #KEYS and redis.call('setex', KEYS[1], ARGV[3], ARGV[2])
return free
