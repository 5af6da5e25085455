-- Gives a weight back, forgets clients that are silent, and refuses those it never saw with an error that has a table's form.
local settings, clients = KEYS[1], KEYS[2]
local now, client, weight, silence = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not redis.call('zscore', clients, client) then
  redis.call('zadd', clients, now, client)
  return {err = 'UNKNOWN client ' .. client}
end
local gone = redis.call('zrangebyscore', clients, 0, now - silence, 'LIMIT', 0, 10)
if #gone > 0 then
  redis.call('zrem', clients, unpack(gone))
end
local left = redis.call('hincrby', settings, 'reservoir', weight)
local fields = redis.call('hkeys', settings)
table.sort(fields)
return {left, #gone, table.concat(fields, ','), redis.call('zcard', clients)}
