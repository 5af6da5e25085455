-- As Traefik's bucket: the whole hash is read at once and its size asked of table.maxn, rates are fractions, and the answer is texts.
local rate, burst, ttl, now, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local kept = redis.call('hgetall', KEYS[1])
local last, tokens = 0, 0
if table.maxn(kept) == 4 then
  last, tokens = tonumber(kept[2]), tonumber(kept[4])
end
if now < last then last = now end
tokens = math.min(tokens + rate * (now - last), burst) - 1
local wait = 0
if tokens < 0 then
  wait = -1 * tokens / rate
  if wait > patience then
    tokens = math.min(tokens + 1, burst)
  end
end
redis.call('hset', KEYS[1], 'last', now, 'tokens', tokens)
redis.call('expire', KEYS[1], ttl)
return {tostring(true), tostring(wait), tostring(tokens)}
