-- The excess over a rate decays with time; more of it than the burst is refused.
local rate, burst, now, cost = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local old = redis.call('HMGET', KEYS[1], 'excess', 'last')
local excess, last = old[1], old[2]
local new_excess
if excess and last then
  local elapsed = now - last
  new_excess = math.max(excess - rate * math.abs(elapsed) / 1000 + cost, 0)
  if new_excess > tonumber(burst) then
    return {0, tostring(new_excess)}
  end
else
  new_excess = 0
end
redis.call('HSET', KEYS[1], 'excess', new_excess, 'last', now)
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 20000)
return {1, tostring(new_excess), tostring(new_excess / rate)}
