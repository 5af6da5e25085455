-- Looks without counting: a missing counter is false inside the answer.
local hits = redis.call("GET", KEYS[1])
if not hits and ARGV[1] ~= "0" then
  redis.call("SET", KEYS[1], ARGV[1])
end
return {hits, redis.call("PTTL", KEYS[1])}
