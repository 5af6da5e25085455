-- A window in a hash, whose times are compared as text of equal length.
local function reset()
  redis.call('HMSET', KEYS[1], 'start', ARGV[2], 'end', ARGV[2] + ARGV[3], 'count', 1)
  return redis.call('EXPIRE', KEYS[1], ARGV[3] * 2 + 10000)
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {reset(), ARGV[2] + ARGV[3], ARGV[4] - 1}
end
if ARGV[1] >= redis.call('HGET', KEYS[1], 'start') and ARGV[1] <= redis.call('HGET', KEYS[1], 'end') then
  return {
    tonumber(redis.call('HINCRBY', KEYS[1], 'count', 1)) <= tonumber(ARGV[4]),
    redis.call('HGET', KEYS[1], 'end'),
    ARGV[4] - redis.call('HGET', KEYS[1], 'count')
  }
end
return {reset(), ARGV[2] + ARGV[3], ARGV[4] - 1}
