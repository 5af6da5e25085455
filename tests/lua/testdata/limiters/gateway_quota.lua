-- As APISIX's limit-count counts down: what is left stands in the key, whose end is the window's.
local quota, window, cost = ARGV[1], ARGV[2], ARGV[3]
assert(tonumber(cost) >= 1, 'a cost is at least 1')
local left = redis.call('ttl', KEYS[1])
if left < 0 then
  redis.call('set', KEYS[1], quota - cost, 'EX', window)
  return {quota - cost, window}
end
return {redis.call('incrby', KEYS[1], 0 - cost), left}
