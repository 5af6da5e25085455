-- rate is what rate.lua decides, as a part. Arguments: charge and tolerance, each as seconds and ns.
local function rate(key, i, s, us)
	local v = redis.call('GET', key)
	local n = us * 1000
	local a, b = s, n
	if v then
		if #v ~= 19 or string.find(v, '%D') then
			return left
		end
		local x, y = string.sub(v, 1, 10) + 0, string.sub(v, 11) + 0
		if x < 1000000000 or x >= 9223372036 then
			return left
		end
		if x > s or x == s and y > n then
			a, b = x, y
		end
	end
	local x, y = ARGV[i] + 0, ARGV[i + 1] + 0
	a, b = a + x, b + y
	if b >= 1000000000 then
		a, b = a + 1, b - 1000000000
	end
	if a < s or a == s and b < n then
		a, b = s, n
	end
	if (a - s - ARGV[i + 2]) * 1000000000 + (b - n - ARGV[i + 3]) > 0 then
		return limited, {v}
	elseif a >= 9223372036 then
		return left
	elseif x == 0 and y == 0 then
		return passes, {v}
	elseif a > s or b > n then
		return charged, {v}, {{'SET', key, string.format('%d%09d', a, b), 'PXAT', a * 1000 + math.ceil(b / 1000000)}}
	elseif v then
		return charged, {v}, {{'DEL', key}}
	end
	return passes, {v}
end
