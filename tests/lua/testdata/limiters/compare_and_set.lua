-- Sets a value if it is still what the caller read; times in nanoseconds as text.
local current = redis.call('GET', KEYS[1])
if current == false then
  return redis.error_reply("key does not exist")
end
if current ~= ARGV[1] then
  return 0
end
if ARGV[3] ~= "0" then
  redis.call('SETEX', KEYS[1], ARGV[3], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1
