-- Unlinks in slices of what unpack may take, and counts by type.
local keys = redis.call('KEYS', ARGV[1])
table.sort(keys)
local kinds, names = {}, {}
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key)['ok']
  kinds[kind] = (kinds[kind] or 0) + 1
end
for kind, n in pairs(kinds) do
  names[#names + 1] = kind .. '=' .. n
end
table.sort(names)
local limit = tonumber(ARGV[2])
if #keys > limit then
  redis.call('UNLINK', unpack(keys, 1, limit))
end
redis.call('HSET', ARGV[3], 'f' .. #keys % 7, #keys)
return {#keys, table.concat(names, ' '), keys[#keys] or ''}
