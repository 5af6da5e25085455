-- Amounts that may be fractions, or given back, added to several counters at once; each begins to expire with its first.
local sums = {}
for i, key in ipairs(KEYS) do
  local amount, ttl = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  sums[i] = redis.call('INCRBYFLOAT', key, amount)
  if ttl and ttl > 0 and redis.call('TTL', key) == -1 then
    redis.call('EXPIRE', key, ttl)
  end
end
return sums
