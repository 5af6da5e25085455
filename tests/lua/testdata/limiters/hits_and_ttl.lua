-- Asks for the lifetime first: a window that is over begins anew.
local left = redis.call("PTTL", KEYS[1])
if left <= 0 or ARGV[1] == "1" then
  redis.call("SET", KEYS[1], 1, "PX", ARGV[2])
  return {1, tonumber(ARGV[2])}
end
return {redis.call("INCR", KEYS[1]), left}
