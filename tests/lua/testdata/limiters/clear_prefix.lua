-- Deletes what begins with a prefix, keys that were never declared among them, in slices.
local found = redis.call('KEYS', ARGV[1] .. '*')
table.sort(found)
local deleted = 0
for i = 1, #found, 50 do
  deleted = deleted + redis.call('DEL', unpack(found, i, math.min(i + 49, #found)))
end
if ARGV[2] == 'refill' then
  for i = 1, tonumber(ARGV[3]) do
    redis.call('SET', ARGV[1] .. i, i)
  end
end
return {deleted, #found, found[1] or false}
