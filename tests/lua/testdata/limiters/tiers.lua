-- Several limits at once: all or none. The answer names the first that is exhausted.
local cost = tonumber(ARGV[1])
local worst, index = math.huge, 0
for i, key in ipairs(KEYS) do
  local left = tonumber(ARGV[i + 1]) - tonumber(redis.call('get', key) or '0')
  if left < worst then
    worst, index = left, i
  end
end
if worst < cost then
  return {false, index, worst, {KEYS[index], {ARGV[index + 1]}}}
end
local out = {true}
for i, key in ipairs(KEYS) do
  out[#out + 1] = redis.call('incrby', key, cost)
end
if out[2] > 1000 then
  redis.call('del', unpack(KEYS))
end
return out
