-- Permits in a sorted set whose members are packed bytes; nothing in the answer means that the permit is given.
local rate, interval, now = tonumber(ARGV[1]), ARGV[2], ARGV[3]
assert(redis.call('hget', KEYS[1], 'rate') ~= false or redis.call('hset', KEYS[1], 'rate', rate), 'RateLimiter is not initialized')
assert(tonumber(ARGV[4]) <= rate, 'Requested permits amount could not exceed defined rate')
local available = redis.call('get', KEYS[2])
if available == false then
  redis.call('set', KEYS[2], rate)
  available = rate
end
local released = 0
local expired = redis.call('zrangebyscore', KEYS[3], 0, tonumber(now) - interval)
for _, member in ipairs(expired) do
  local random, permits = struct.unpack('Bc0I', member)
  released = released + permits
end
if released > 0 then
  redis.call('zremrangebyscore', KEYS[3], 0, tonumber(now) - interval)
  available = math.min(available + released, rate)
  redis.call('set', KEYS[2], available)
end
if tonumber(available) < tonumber(ARGV[4]) then
  local first = redis.call('zrange', KEYS[3], 0, 0, 'withscores')
  return first[2] and 3 + interval - (tonumber(now) - first[2])
end
redis.call('zadd', KEYS[3], now, struct.pack('Bc0I', string.len(ARGV[5]), ARGV[5], ARGV[4]))
redis.call('decrby', KEYS[2], ARGV[4])
return nil
