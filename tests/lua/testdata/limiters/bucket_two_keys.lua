-- A bucket in two keys, one for the tokens and one for the time; a missing key is no number.
local rate = tonumber(ARGV[1])
local capacity = tonumber(ARGV[2])
local now = tonumber(ARGV[3])
local wanted = tonumber(ARGV[4])
local ttl = math.floor(capacity / rate * 2) + 10000
local tokens = tonumber(redis.call("get", KEYS[1]))
if tokens == nil then
  tokens = capacity
end
local stamp = tonumber(redis.call("get", KEYS[2]))
if stamp == nil then
  stamp = 0
end
local filled = math.min(capacity, tokens + math.max(0, now - stamp) * rate)
local allowed = filled >= wanted
if allowed then
  filled = filled - wanted
end
redis.call("setex", KEYS[1], ttl, filled)
redis.call("setex", KEYS[2], ttl, now)
return allowed
