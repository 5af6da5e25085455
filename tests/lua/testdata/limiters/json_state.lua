-- The whole state is one JSON text, replaced if its version is the one that the caller knows.
local old = redis.call("GET", KEYS[1])
if old then
  local state = cjson.decode(old)
  if state.version ~= tonumber(ARGV[1]) then
    return redis.error_reply("RACE state has version " .. state.version)
  end
end
local next_state = cjson.decode(ARGV[2])
if type(next_state.level) ~= "number" then
  return redis.error_reply("ERR no level")
end
if old and cjson.decode(old).last > next_state.last then
  return redis.status_reply("STALE")
end
return redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
