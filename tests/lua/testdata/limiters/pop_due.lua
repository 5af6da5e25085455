-- A queue by time: adds one, takes one that is due, or nothing.
if ARGV[2] ~= "" then
  redis.call("zadd", KEYS[1], ARGV[1] + ARGV[3], ARGV[2])
end
local due = redis.call("zrangebyscore", KEYS[1], "-inf", ARGV[1], "LIMIT", 0, 1)
local item = due[1]
if item then
  redis.call("zrem", KEYS[1], item)
  return item
end
