-- Adds only to what is there.
if redis.call("EXISTS", KEYS[1]) == 0 then
  if ARGV[2] == "create" then
    return redis.call("SET", KEYS[1], ARGV[1])
  end
  return false
end
local ok, value = pcall(redis.call, "INCRBY", KEYS[1], ARGV[1])
if not ok then
  return redis.error_reply("ERR cannot add: " .. value.err)
end
return value
