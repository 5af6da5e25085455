-- A sliding window beside lifetime totals.
local now, limit, span = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call("zremrangebyscore", KEYS[1], "-inf", now - span)
local used = redis.call("zcard", KEYS[1])
local ok = used < limit
if ok then
  redis.call("zadd", KEYS[1], now, ARGV[4])
  redis.call("hincrby", KEYS[2], "ok", 1)
else
  redis.call("hincrby", KEYS[2], "refused", 1)
end
redis.call("hincrbyfloat", KEYS[2], "load", 0.25)
redis.call("pexpireat", KEYS[1], now + 900000000)
local totals = redis.call("hmget", KEYS[2], "ok", "refused", "load")
return {ok, used, totals[1], totals[2], totals[3], math.ceil(used / limit * 100)}
