-- A window that doubles with each call over the limit, up to a ceiling. Switches come as words.
local max, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local again, exponential = ARGV[3] == 'true', ARGV[4] == 'true'
local count = redis.call('INCR', KEYS[1])
if exponential and count > max then
  local over = count - max - 1
  local span = math.min(window * 2 ^ over, 2 ^ 40)
  redis.call('PEXPIRE', KEYS[1], span)
  return {count, span, true}
elseif count == 1 or again and count > max then
  redis.call('PEXPIRE', KEYS[1], window)
  return {count, window, false}
end
return {count, window, count > max}
