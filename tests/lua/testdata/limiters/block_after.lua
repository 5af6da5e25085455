-- Counts in one key, blocks in another.
local hits_key, block_key = KEYS[1], KEYS[2]
local ttl, limit, block = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local hits = redis.call('INCR', hits_key)
local left = redis.call('PTTL', hits_key)
if left <= 0 then
  redis.call('PEXPIRE', hits_key, ttl)
  left = ttl
end
local blocked = redis.call('GET', block_key) and true or false
local over = hits > limit
if over and not blocked then
  redis.call('SET', block_key, '1', 'PX', block)
  blocked = true
elseif hits > limit * 3 then
  redis.call('DEL', hits_key, block_key)
end
return {hits, left, blocked and 1 or 0, (over and 'over') or (blocked and 'blocked') or 'fine'}
