-- The first element of the answer is a boolean.
local max = tonumber(ARGV[1]); local now = tonumber(ARGV[2]);
local id = ARGV[3];
local queued = ARGV[4] == '1';
redis.call('zremrangebyscore', KEYS[1], '-inf', now - ARGV[5]);
local count = redis.call('zcard', KEYS[1]);
local allowed = count < max;
if allowed then
  redis.call('zadd', KEYS[1], now, id);
end
if not allowed and queued then
  redis.call('zadd', KEYS[2], now, id);
end
local position = redis.call('zrank', KEYS[2], id);
redis.call('pexpireat', KEYS[1], now + 900000000);
return {allowed, count, position, {allowed or 'no', position and position + 1 or -1}};
