-- As Kong tells what it has counted by itself: a sum, and the end of the period only for a key that there was not.
local sum, ends = tonumber(ARGV[1]), ARGV[2]
local there = redis.call("exists", KEYS[1])
redis.call("incrby", KEYS[1], sum)
if not there or there == 0 then
  redis.call("expireat", KEYS[1], ends)
end
