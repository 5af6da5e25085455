-- What rate.lua does, for a lease: charges the first of several costs that passes. KEYS[1]; ARGV: the largest cost's charge and tolerance, and in
-- a text, as numbers with spaces between, those of the others, which are looked at only when it does not pass.
-- Reply: the time in s and us, the code, what was found, and which cost the code is about, from 1: the last one if none passes.
--
-- A lease is worth its charge, so that this stands alone as rate.lua does.
local t = redis.call('TIME')
local v = redis.call('GET', KEYS[1])
local s, n = t[1] + 0, t[2] * 1000
local from, beyond = s, n
if v then
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
		from, beyond = x, y
	end
end
t[3], t[4], t[5] = 3, {v}, 0
local others
local charge, rest, tolerance, below = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
while charge do
	t[5] = t[5] + 1
	local a, b = from + charge, beyond + rest
	if b >= 1000000000 then
		a, b = a + 1, b - 1000000000
	end
	if (a - s - tolerance) * 1000000000 + (b - n - below) <= 0 then
		if a >= 9223372036 then
			t[3], t[4], t[5] = 2, nil, nil
		elseif a == from and b == beyond then
			t[3] = 0
		else
			redis.call('SET', KEYS[1], string.format('%d%09d', a, b), 'PXAT', a * 1000 + math.ceil(b / 1000000))
			t[3] = 1
		end
		return t
	end
	others = others or string.gmatch(ARGV[5], '%S+')
	charge, rest, tolerance, below = others(), others(), others(), others()
end
return t
