-- A window that answers one of three codes: within the quota, the last of it, over it.
local limit = tonumber(ARGV[1])
local seconds = tonumber(ARGV[2])
local current = redis.call("INCRBY", KEYS[1], 1)
if current == 1 then
  redis.call("expire", KEYS[1], seconds)
end
if current < limit then
  return 1
elseif current == limit then
  return 2
else
  return 0
end
