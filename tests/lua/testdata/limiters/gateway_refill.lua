-- As Portkey's bucket: two strings that are written only if they have changed, whole tokens, and a wait that is rounded down.
local size, window, cost, now, ttl, takes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if cost <= 0 or size <= 0 or window <= 0 then
  return {0, -1, -1}
end
local filled = tonumber(redis.call("GET", KEYS[2]) or "0")
local tokens = tonumber(redis.call("GET", KEYS[1]) or "-1")
local changed, moved = tokens == -1, filled == 0
if changed then tokens = size end
if moved then filled = now end
if now > filled then
  local more = math.floor((now - filled) * (size / window))
  if more > 0 then
    tokens, filled = math.min(tokens + more, size), now
    changed, moved = true, true
  end
end
local passes, wait, had = 0, 0, tokens
if tokens >= cost then
  passes = 1
  if takes == 1 then
    tokens, changed = tokens - cost, true
  end
else
  changed = changed or tokens > 0
  tokens = 0
  local rate = size / window
  wait = (rate > 0) and math.floor((cost - had) / rate) or -1
end
if changed then redis.call("SET", KEYS[1], tokens, "PX", ttl) end
if moved then redis.call("SET", KEYS[2], filled, "PX", ttl) end
return {passes, wait, had}
