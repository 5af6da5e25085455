-- Options arrive packed; jobs wait in a sorted set by priority, a counter limits how many leave per window.
local opts = cmsgpack.unpack(ARGV[1])
local now = tonumber(ARGV[2])
local function score(priority, at)
  return priority * 0x100000000 + at % 0x100000000
end
local function window(key)
  local started = tonumber(redis.call('HGET', key, 'since') or 0)
  if now - started >= opts.duration then
    redis.call('HMSET', key, 'since', now, 'count', 0)
  end
  return redis.call('HINCRBY', key, 'count', 1)
end
redis.call('ZADD', KEYS[1], score(opts.priority, now), opts.name)
if window(KEYS[2]) > opts.max then
  return {opts.name, 'wait', redis.call('ZCARD', KEYS[1])}
end
local head = redis.call('ZPOPMIN', KEYS[1])
local ok, size = pcall(function() return #cmsgpack.pack(opts.name, opts.tags) end)
return {head, ok, size, string.format('%05d', redis.call('ZCARD', KEYS[1])), table.concat(opts.tags, '+')}
