-- Forgets what limiters keep at keys, or nothing if one of them holds what no limiter writes.
-- KEYS; ARGV: texts that the caller has found to be numbers, beside those that plainly are.
-- Reply: 0 and how many keys there were; 1, and nothing was done; or 2 and texts that the caller has to judge.

-- integer reports whether a text is a whole number of 64 bits as Redis writes it.
local function integer(text)
	local sign, digits = string.match(text, '^(-?)([1-9]%d*)$')
	if not digits then
		return text == '0'
	end
	return #digits < 19 or #digits == 19 and (digits <= '9223372036854775807' or sign == '-' and digits == '9223372036854775808')
end

local numbers, unclear = {}, {}
for _, text in ipairs(ARGV) do
	numbers[text] = true
end

local function slices(key)
	if redis.call('HLEN', key) > 4000 or redis.call('PTTL', key) == -1 then
		return false
	end
	local found = redis.call('HGETALL', key)
	for k = 1, #found, 2 do
		if not integer(found[k]) or not integer(found[k + 1]) or string.sub(found[k + 1], 1, 1) == '-' then
			return false
		end
	end
	return true
end

-- times looks at all entries, as far as that can be had of the index, and at 10,000 one by one.
local function times(key)
	local size = redis.call('ZCARD', key)
	if redis.call('PTTL', key) == -1 or redis.call('ZCOUNT', key, '(0', '9007199254740992') ~= size then
		return false
	end
	for first = 0, math.min(size, 10000) - 1, 1000 do
		local found = redis.call('ZRANGE', key, first, first + 999, 'WITHSCORES')
		for k = 2, #found, 2 do
			if found[k] % 1 ~= 0 then
				return false
			end
		end
	end
	return true
end

local there = {}
for _, key in ipairs(KEYS) do
	local kind = redis.call('TYPE', key).ok
	if kind == 'string' then
		local text = redis.call('GET', key)
		if not integer(text) and not numbers[text] then
			if #text > 5120 then
				return {1}
			end
			unclear[#unclear + 1] = text
		end
	elseif kind ~= 'none' and not (kind == 'hash' and slices(key) or kind == 'zset' and times(key)) then
		return {1}
	end
	if kind ~= 'none' then
		there[#there + 1] = key
	end
end
if #unclear > 0 then
	return {2, unclear}
end
for _, key in ipairs(there) do
	redis.call('DEL', key)
end
return {0, #there}
