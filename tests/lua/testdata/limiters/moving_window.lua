-- A moving window that first looks at the entry that would have to be out of it.
local key = KEYS[1]
local limit, now, span, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if amount > limit then
  return false
end
local entry = redis.call('zrevrange', key, limit - amount, limit - amount, 'withscores')
if entry[2] and tonumber(entry[2]) >= now - span then
  return false
end
local entries = {}
for i = 1, amount do
  entries[#entries + 1] = ARGV[2]
  entries[#entries + 1] = ARGV[2] .. ':' .. i
end
redis.call('zadd', key, unpack(entries))
redis.call('zremrangebyrank', key, 0, -limit - 1)
redis.call('expire', key, 20000)
return true
