-- GCRA that may only look: the answer is the same, the key is not.
local function answer(limited, remaining, retry, reset)
  return {limited and 1 or 0, remaining, tostring(retry), tostring(reset)}
end
local burst, count, period, cost, now, look = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == 'look'
local emission = period / count
local offset = emission * (burst + 1)
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
tat = tat < now and now or tat
local new_tat = tat + cost * emission
local room = now - (new_tat - offset)
if room < 0 then
  local free = math.floor((now - (tat - offset)) / emission)
  local retry = cost * emission <= offset and -room or -1
  return answer(true, free, retry, tat - now)
end
if not look and new_tat > now then
  redis.call('SET', KEYS[1], new_tat, 'EX', math.ceil(new_tat - now) + 10000)
end
return answer(false, math.floor(room / emission), -1, new_tat - now)
