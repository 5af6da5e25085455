-- A share of the callers, chosen by the hash of their name, is limited; bits tell which.
local digest = redis.sha1hex(ARGV[1])
local bucket = tonumber(string.sub(digest, 1, 4), 16) % 100
if bucket >= tonumber(ARGV[2]) then
  return {bucket, 'unlimited'}
end
local mask = tonumber(redis.call('GET', KEYS[1]) or 0)
mask = bit.bor(mask, bit.lshift(1, bucket % 31))
redis.call('SET', KEYS[1], mask)
local n = redis.call('INCR', KEYS[2])
return {bucket, n > 20 and 'refused' or 'counted', bit.tohex(mask), bit.band(mask, 0xff), digest:reverse():upper():sub(-6)}
