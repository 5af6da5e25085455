-- Several rates over one sorted set: counts in bounds that are made of strings, adds many at once.
local now, weight = ARGV[1], tonumber(ARGV[2])
for i = 3, #ARGV, 2 do
  local span, limit = ARGV[i], tonumber(ARGV[i + 1])
  local used = redis.call('ZCOUNT', KEYS[1], now - span, now)
  if limit - used < weight then
    return (i - 3) / 2
  end
end
local items = {}
for i = 1, weight do
  items[#items + 1] = now
  items[#items + 1] = now .. '-' .. i
end
redis.call('ZADD', KEYS[1], unpack(items))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. (now - ARGV[#ARGV - 1]))
return -1
