-- Adds, begins a window with the first addition, and tells how much of it is left.
local count = redis.call("INCRBY", KEYS[1], ARGV[1])
local left = ARGV[2]
if count == tonumber(ARGV[1]) then
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
else
  left = redis.call("PTTL", KEYS[1])
end
return {count, tonumber(left)}
