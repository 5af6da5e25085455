-- A lease with a token: acquire, extend, release, look.
local key, action, token, span = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local holder = redis.call('get', key)
if action == 'acquire' then
  if holder == false or holder == token then
    return redis.call('set', key, token, 'px', span)
  end
  return false
elseif action == 'extend' then
  if holder ~= token then
    return 0
  end
  local left = redis.call('pttl', key)
  if left < 0 then
    left = 0
  end
  return redis.call('pexpire', key, span + 1000000)
elseif action == 'release' then
  if not holder or holder ~= token then
    return 0
  end
  return redis.call('del', key)
end
return holder
