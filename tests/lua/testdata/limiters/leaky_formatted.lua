-- A leaky bucket whose level is written with nine decimals.
redis.replicate_commands()
local rate, capacity, amount, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local at = tonumber(redis.call("GET", KEYS[1] .. ".last_updated"))
if at == nil then
  at = now
end
local level = tonumber(redis.call("GET", KEYS[1] .. ".bucket_level"))
if level == nil then
  level = 0
end
level = math.max(0, level - (now - at) * rate)
local ttl = math.ceil(capacity / rate) + 10000
local full = 0
if level + amount > capacity then
  full = 1
  level = math.min(capacity, level)
else
  level = level + amount
end
redis.call("SETEX", KEYS[1] .. ".bucket_level", ttl, string.format("%.9f", level))
redis.call("SETEX", KEYS[1] .. ".last_updated", ttl, string.format("%.6f", now))
return {string.format("%.9f", level), full, string.format("%10.3f|%-8s|%e", level, full, level)}
