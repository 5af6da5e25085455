#!lua
-- Two counters, the earlier one weighted by what is left of it; the numbers stay strings until they are used.
local current, previous = KEYS[1], KEYS[2]
local tokens, now, window, step = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local here = redis.call("GET", current)
if here == false then
  here = 0
end
local before = redis.call("GET", previous)
if before == false then
  before = 0
end
local share = (now % window) / window
before = math.floor((1 - share) * before)
if before + here >= tonumber(tokens) then
  return -1
end
local new = redis.call("INCRBY", current, step)
if new == step then
  redis.call("PEXPIRE", current, window * 2 + 100000000)
end
return tokens - (new + before)
