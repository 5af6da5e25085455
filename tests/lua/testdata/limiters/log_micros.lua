-- A log of microseconds that keeps at most max entries and answers in milliseconds.
local key, now, span, max = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local fresh = redis.call('exists', key) == 0
redis.call('zremrangebyscore', key, 0, now - span)
local count = redis.call('zcard', key)
redis.call('zadd', key, now, now)
local oldest = redis.call('zrange', key, 0, 0)[1]
local nth = redis.call('zrange', key, -max, -max)[1]
redis.call('zremrangebyrank', key, 0, -(max + 1))
redis.call('pexpire', key, 90000000)
local reset = (nth or oldest) + span
return {math.max(max - count, 0), math.floor(reset / 1000), fresh, count >= max}
