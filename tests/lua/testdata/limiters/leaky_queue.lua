-- Each call is given the moment at which it may go on; too long a queue is refused.
local now, gap, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])
local waiting = redis.call('ZCARD', KEYS[1])
if waiting >= most then
  return redis.status_reply('FULL')
end
local last = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
local at = now
if #last == 2 then
  at = math.max(now, last[2] + gap)
end
redis.call('ZADD', KEYS[1], at, ARGV[4])
return {at - now, waiting, redis.call('ZRANK', KEYS[1], ARGV[4])}
