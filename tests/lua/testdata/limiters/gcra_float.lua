-- GCRA in floating seconds since a late epoch. The time of the next free slot is a bare number in the key.
redis.replicate_commands()
local burst, rate, period, cost = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now = (ARGV[5] - 1483228800) + (ARGV[6] / 1000000)
local emission = period / rate
local increment = emission * cost
local tolerance = emission * burst
local tat = redis.call("GET", KEYS[1])
if not tat then
  tat = now
else
  tat = tonumber(tat)
end
tat = math.max(tat, now)
local new_tat = tat + increment
local diff = now - (new_tat - tolerance)
local remaining = diff / emission
if remaining < 0 then
  return {0, 0, tostring(diff * -1), tostring(tat - now)}
end
local reset = new_tat - now
if reset > 0 then
  redis.call("SET", KEYS[1], new_tat, "EX", math.ceil(reset) + 10000)
end
return {cost, remaining, tostring(-1), tostring(reset)}
