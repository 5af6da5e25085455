-- GCRA: KEYS[1] holds the theoretical arrival time (TAT), a string of ns since the epoch.
-- ARGV: the charge and the tolerance, each as whole seconds and the ns beyond them, which are from 0 to 999999999. A charge below 0 gives
-- back. A charge of 0 with a tolerance of -1 s looks.
-- Reply: the time in s and us; what became of the call (0 passes, 1 passes and was written, 2 left to the caller, 3 limited); the TAT found.
--
-- Doubles are exact up to 2^53 only, so instants are pairs of seconds and nanoseconds. This script is called more often than all others:
-- hence no functions, and no call that can be spared.
local t = redis.call('TIME')
local v = redis.call('GET', KEYS[1])
local s, n = t[1] + 0, t[2] * 1000
local a, b = s, n
if v then
	-- Any TAT from 2001 to 2262 has 19 digits. What else the key may hold is left to the caller.
	if #v ~= 19 or string.find(v, '%D') then
		t[3] = 2
		return t
	end
	local x, y = string.sub(v, 1, 10) + 0, string.sub(v, 11) + 0
	if x < 1000000000 or x >= 9223372036 then
		t[3] = 2
		return t
	end
	if x > s or x == s and y > n then
		a, b = x, y
	end
end
a, b = a + ARGV[1], b + ARGV[2]
if b >= 1000000000 then
	a, b = a + 1, b - 1000000000
end
-- The sign of this sum is right whatever is rounded: the seconds are rounded from some 2^53 ns on, and the rest is below 3 seconds.
if (a - s - ARGV[3]) * 1000000000 + (b - n - ARGV[4]) > 0 then
	t[3], t[4] = 3, v
	return t
end
if a >= 9223372036 then -- beyond 64 bits of ns, or nearly
	t[3] = 2
	return t
end
if a > s or a == s and b > n then
	redis.call('SET', KEYS[1], string.format('%d%09d', a, b), 'PXAT', string.format('%d', a * 1000 + math.ceil(b / 1000000)))
	t[3] = 1
elseif v then
	redis.call('DEL', KEYS[1])
	t[3] = 1
else
	t[3] = 0
end
t[4] = v
return t
