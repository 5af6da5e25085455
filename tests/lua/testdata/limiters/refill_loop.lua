-- A bucket that is refilled step by step, and an answer with an answer inside.
local max, interval, amount, now, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local bucket = redis.call("HMGET", KEYS[1], "at", "tokens")
local at, tokens
if bucket[1] == false then
  at, tokens = now, max
else
  at, tokens = tonumber(bucket[1]), tonumber(bucket[2])
end
local rounds = 0
repeat
  local due = now - at >= interval
  if due then
    at = at + interval
    tokens = math.min(max, tokens + amount)
    rounds = rounds + 1
  end
  if rounds >= 50 then
    at = now
  end
until not due
local fits = tokens >= cost
if fits then
  tokens = tokens - cost
end
redis.call("HSET", KEYS[1], "at", at, "tokens", tokens)
redis.call("PEXPIRE", KEYS[1], 50000000)
return {{fits, tokens}, {rounds, at + interval}}
