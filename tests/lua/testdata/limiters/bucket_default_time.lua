-- A bucket per second where an empty time means the two strings that stand in for the clock.
redis.replicate_commands()
local rate, capacity, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local now = tonumber(ARGV[3])
if now == nil then
  local clock = {ARGV[5], '123456'}
  now = clock[1]
end
local fill = capacity / rate
local ttl = math.floor(fill * 2) + 10000
local last = tonumber(redis.call("get", KEYS[1]))
local at = tonumber(redis.call("get", KEYS[2])) or 0
last = last or capacity
local delta = math.max(0, now - at)
local level = math.min(capacity, last + (delta * rate))
local allowed = level >= requested
local number = 0
if allowed then
  level = level - requested
  number = 1
end
if ttl > 0 then
  redis.call("setex", KEYS[1], ttl, level)
  redis.call("setex", KEYS[2], ttl, now)
end
return {number, level}
