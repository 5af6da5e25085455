-- As Spring Cloud Gateway's bucket: two fields that are read one by one, a nil that tonumber makes of false, and time that may be the server's.
redis.replicate_commands()
local rate, capacity, now, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if now == nil then
  now = redis.call('TIME')[1]
end
local ttl = math.floor(2 * (capacity / rate))
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens'))
local at = tonumber(redis.call('HGET', KEYS[1], 'timestamp'))
if tokens == nil then tokens = capacity end
if at == nil then at = 0 end
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
local passes = 0
if tokens >= cost then
  passes, tokens = 1, tokens - cost
end
if ttl > 0 then
  redis.call('HSET', KEYS[1], 'tokens', tokens)
  redis.call('HSET', KEYS[1], 'timestamp', now)
  redis.call('EXPIRE', KEYS[1], ttl)
end
return {passes, tokens}
