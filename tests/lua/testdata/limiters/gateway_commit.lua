-- As newer APISIX counts up, with costs of 0 that only ask: the text of an argument is an answer, and milliseconds are made of one.
assert(tonumber(ARGV[3]) >= 0, "a cost is at least 0")
local left = redis.call('pttl', KEYS[1])
if left < 0 then
  redis.call('set', KEYS[1], ARGV[3], 'EX', ARGV[2])
  return {ARGV[3], ARGV[2] * 1000}
end
return {redis.call('incrby', KEYS[1], ARGV[3]), left}
