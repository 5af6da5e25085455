-- A bucket that refills whole ticks of an interval in nanoseconds, kept in a hash that is read as pairs.
local max, interval, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local function state(key)
  local pairs_ = redis.call("HGETALL", key)
  local out = {}
  for i = 1, #pairs_, 2 do
    out[pairs_[i]] = pairs_[i + 1]
  end
  return out
end
local data = state(KEYS[1])
local start = data.s and tonumber(data.s) or now
local tick = data.k and tonumber(data.k) or 0
local tokens = data.t and tonumber(data.t) or max
local current = math.floor((now - start) / interval)
if tick < current then
  tokens = math.min(max, tokens + (current - tick) * max)
  tick = current
end
local ok = tokens > 0
if ok then
  tokens = tokens - 1
end
redis.call("HSET", KEYS[1], "s", string.format("%.0f", start), "k", tick, "t", tokens, "m", max)
redis.call("EXPIRE", KEYS[1], 30000)
return {max, tokens, string.format("%.0f", start + interval * (current + 1)), ok}
