-- Holders in a sorted set by the end of their lease; a key of another type is given up.
local key, token, now, ends, max = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
redis.replicate_commands()
local kind = redis.call('TYPE', key).ok
if kind == 'string' then
  redis.call('DEL', key)
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
if redis.call('ZSCORE', key, token) then
  redis.call('ZADD', key, 'XX', ends, token)
elseif redis.call('ZCOUNT', key, now, '+inf') < max then
  redis.call('ZADD', key, 'NX', ends, token)
else
  if ARGV[5] == 'break' then
    redis.call('DEL', key)
    redis.call('SET', key, token)
  end
  return false
end
local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIRE', key, 40000000)
return {true, kind, last, redis.call('ZCARD', key)}
