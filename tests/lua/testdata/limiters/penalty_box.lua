-- Strikes kept as JSON; three within the span put the caller into a box.
local now, span = tonumber(ARGV[1]), tonumber(ARGV[2])
local text = redis.call('hget', KEYS[1], ARGV[3])
local strikes = text and cjson.decode(text) or {}
local kept = {}
for _, at in ipairs(strikes) do
  if now - at < span then
    kept[#kept + 1] = at
  end
end
table.insert(kept, now)
local boxed = #kept >= 3
if boxed then
  table.remove(kept, 1)
end
redis.call('hset', KEYS[1], ARGV[3], cjson.encode(kept))
return {boxed, #kept, cjson.encode({boxed, kept[1]}), cjson.encode({last = kept[#kept]})}
