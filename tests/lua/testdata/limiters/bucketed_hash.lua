-- A window of small buckets in a hash; old ones are dropped, the rest are added up.
local width, buckets, now, limit, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local current = math.floor(now / width)
local oldest = current - buckets + 1
local total, dead = 0, {}
for i, v in ipairs(redis.call('hgetall', KEYS[1])) do
  if i % 2 == 1 then
    dead[0] = tonumber(v)
    if dead[0] < oldest then
      dead[#dead + 1] = v
    end
  elseif dead[0] >= oldest then
    total = total + v
  end
end
if #dead > 0 then
  redis.call('hdel', KEYS[1], unpack(dead))
end
if total + cost > limit then
  return {total, #dead, false}
end
return {total + redis.call('hincrby', KEYS[1], string.format('%d', current), cost) * 0 + cost, #dead, redis.call('hlen', KEYS[1])}
