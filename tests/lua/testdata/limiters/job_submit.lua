-- Settings in a hash, running jobs in one sorted set, clients in another: reservoir, concurrency and spacing at once.
local settings, running, clients = unpack(KEYS)
local now, client, id, weight, priority = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local function get(...)
  local values = redis.call('hmget', settings, ...)
  for i, v in ipairs(values) do
    values[i] = tonumber(v) or 0
  end
  return unpack(values)
end
if redis.call('exists', settings) == 0 then
  local setup = {'hmset', settings}
  for name, value in string.gmatch(ARGV[6], '(%a+)=(%-?%d+)') do
    table.insert(setup, name)
    table.insert(setup, value)
  end
  redis.call(unpack(setup))
end
for _, done in ipairs(redis.call('zrangebyscore', running, '-inf', '(' .. now)) do
  local w = tonumber(string.sub(done, string.find(done, ':', 1, true) + 1))
  redis.call('hincrby', settings, 'busy', 0 - w)
  redis.call('zrem', running, done)
end
local max, gap, free, nextAt, busy = get('max', 'gap', 'reservoir', 'nextAt', 'busy')
redis.call('zadd', clients, now, client)
if weight > free then
  return {'reservoir', free, false}
elseif busy + weight > max then
  return {'concurrency', max - busy, priority == 'high'}
end
local start = math.max(now, nextAt)
redis.call('hincrby', settings, 'reservoir', '-' .. weight)
redis.call('hincrby', settings, 'busy', weight)
redis.call('hset', settings, 'nextAt', start + gap)
redis.call('zadd', running, start + 1000, id .. ':' .. weight)
return {'run', start - now, true}
