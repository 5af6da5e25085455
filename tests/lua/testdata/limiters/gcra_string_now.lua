-- GCRA in milliseconds where the time stays a string, also inside math.max.
local now, burst, emission, cost = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local tat = redis.call('GET', KEYS[1]) or now
tat = math.max(tat, now)
local new_tat = tat + emission * cost
local allow_at = new_tat - burst * emission
local diff = now - allow_at
if diff < 0 then
  return {0, math.floor((now - (tat - burst * emission)) / emission), -diff, tat - now}
end
redis.call('SET', KEYS[1], new_tat, 'PX', math.ceil(new_tat - now) + 10000000)
return {1, math.floor(diff / emission), 0, new_tat - now, tostring(diff / emission)}
