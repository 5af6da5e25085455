-- Counters that share the start of a window, as gateways to language models count requests, tokens and calls under way.
local now, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local answer = {}
for pair = 1, #KEYS / 2 do
  local start, count = KEYS[2 * pair - 1], KEYS[2 * pair]
  local began, used = redis.call('GET', start), 1
  if began and now - tonumber(began) < size then
    used = redis.call('INCR', count)
  else
    began = tostring(now)
    redis.call('SET', start, began)
    redis.call('SET', count, used)
    redis.call('EXPIRE', start, size)
    redis.call('EXPIRE', count, size)
  end
  answer[#answer + 1] = began
  answer[#answer + 1] = used
end
return answer
