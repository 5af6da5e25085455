-- Reservations that can be taken back: a coroutine walks the list, a metatable gives defaults.
local now, id, action, size = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local held = setmetatable({}, {__index = function() return 0 end})
local flat = redis.call('HGETALL', KEYS[1])
local function each()
  for i = 1, #flat, 2 do
    coroutine.yield(flat[i], tonumber(flat[i + 1]))
  end
end
local sum = 0
for name, amount in coroutine.wrap(each) do
  held[name] = amount
  sum = sum + amount
end
if action == 'cancel' then
  return {held[id], redis.call('HDEL', KEYS[1], id)}
elseif sum + size > 50 then
  error({err = 'FULL ' .. sum .. ' of 50 are taken'})
end
redis.call('HSET', KEYS[1], id, held[id] + size)
return {held[id], sum, select('#', unpack(flat)), now % 7}
