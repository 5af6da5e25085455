-- As Kong's rate-limiting counts: the first call of a period sets its end, and the answer is the count before the call.
local count = redis.call('incr', KEYS[1])
if count == 1 then
  redis.call('expire', KEYS[1], ARGV[1])
end
return count - 1
