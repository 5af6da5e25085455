-- As Tyk's sliding log in a script: nanoseconds that no double holds are scores and members as texts, and the oldest call that still counts is the answer.
local log, now, from, limit, seconds = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', log, '-inf', from)
local before = redis.call('ZCARD', log)
redis.call('ZADD', log, now, now)
redis.call('EXPIRE', log, seconds)
local left = limit - before - 1
if left < 0 then left = 0 end
local free = now
if before >= limit then
  local counting = redis.call('ZRANGE', log, -limit, -limit)
  if #counting > 0 then free = counting[1] end
end
return {before, left, free}
