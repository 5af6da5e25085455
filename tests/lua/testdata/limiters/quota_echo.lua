-- Uses up a quota; the answer repeats what was asked for. Written so that it may stand on one line.
assert(tonumber(ARGV[3]) >= 1, "cost must be at least 1")
local ttl = redis.call('pttl', KEYS[1])
if ttl < 0 then
  redis.call('set', KEYS[1], ARGV[1] - ARGV[3], 'EX', ARGV[2])
  return {ARGV[1] - ARGV[3], ARGV[2] * 1000}
end
return {redis.call('incrby', KEYS[1], 0 - ARGV[3]), ttl}
