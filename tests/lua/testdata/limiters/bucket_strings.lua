-- A token bucket whose answer is three strings.
local function fields(key)
  local flat, map = redis.call("hgetall", key), {}
  for i = 1, table.getn(flat), 2 do
    map[flat[i]] = flat[i + 1]
  end
  return flat, map
end
local rate, burst, now, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local flat, map = fields(KEYS[1])
local last, tokens = now, burst
if table.maxn(flat) ~= 0 then
  last, tokens = tonumber(map.last), tonumber(map.tokens)
end
if now < last then
  last = now
end
tokens = math.min(burst, tokens + (now - last) * rate)
local wait = 0
tokens = tokens - cost
if tokens < 0 then
  wait = -tokens / rate
end
local ok = wait <= 5 and cost <= burst
if ok then
  redis.call("hset", KEYS[1], "last", now, "tokens", tokens)
  redis.call("expire", KEYS[1], 30000)
end
return {tostring(ok), tostring(wait), tostring(tokens)}
