-- Replaces a binary state if it is byte for byte what the caller holds; an empty expectation creates it.
if ARGV[1] == '' then
  if redis.call('set', KEYS[1], ARGV[2], 'nx', 'px', ARGV[3]) then
    return 1
  else
    return 0
  end
end
if redis.call('get', KEYS[1]) == ARGV[1] then
  redis.call('psetex', KEYS[1], ARGV[3], ARGV[2])
  return 1
end
return 0
