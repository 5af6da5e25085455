-- Gives back what calls have been charged that came to nothing, but never so much that more passes than if they had not been charged.
-- KEYS; ARGV: for each key the family, and four arguments. Reply: 1.
local t = redis.call('TIME')
local s, us = t[1] + 0, t[2] + 0

-- rate: the charge in seconds and ns, and when it was made, in s and us. What has been paid off meanwhile is gone.
local function rate(key, i)
	local v = redis.call('GET', key)
	local charged, chargedUs = ARGV[i + 2] + 0, ARGV[i + 3] + 0
	if not v or #v ~= 19 or string.find(v, '%D') or charged > s or charged == s and chargedUs > us then
		return
	end
	local n = us * 1000
	local x, y = ARGV[i] - s + charged, ARGV[i + 1] - n + chargedUs * 1000 -- of the charge, what is not paid off
	local up = math.floor(y / 1000000000)
	x, y = x + up, y - up * 1000000000
	if x < 0 then
		return
	end
	local a, b = string.sub(v, 1, 10) - x, string.sub(v, 11) - y
	if b < 0 then
		a, b = a - 1, b + 1000000000
	end
	if a > 9223372036 then
		return
	elseif a > s or a == s and b > n then
		redis.call('SET', key, string.format('%d%09d', a, b), 'PXAT', a * 1000 + math.ceil(b / 1000000))
	else
		redis.call('DEL', key)
	end
end

-- counter: the cost, and when the window ends in which it was charged.
local function counter(key, i)
	local v = redis.call('GET', key)
	if v and plain(v) and expiry(key) == ARGV[i + 1] + 0 then
		redis.call('SET', key, whole(math.max(v - ARGV[i], 0)), 'PXAT', ARGV[i + 1])
	end
end

-- slices: the cost, and the beginning of the slice in which it was charged.
local function slices(key, i)
	local count = redis.call('HGET', key, ARGV[i + 1])
	if not count or not plain(count) then
		return
	elseif count - ARGV[i] > 0 then
		redis.call('HSET', key, ARGV[i + 1], whole(count - ARGV[i]))
	else
		redis.call('HDEL', key, ARGV[i + 1])
	end
end

-- entries: the time, and an id of its own; or the first and the last number of those that have none.
local function entry(key, i)
	local at = redis.call('ZSCORE', key, ARGV[i + 1])
	if at and at + 0 == ARGV[i] + 0 then
		redis.call('ZREM', key, ARGV[i + 1])
	end
end

local function stamped(key, i)
	local rest = ARGV[i + 3] + 0
	for number = ARGV[i + 2] + 0, ARGV[i + 1] + 0, -1 do
		local name = ARGV[i] .. '-' .. number
		local at = rest > 0 and redis.call('ZSCORE', key, name)
		if at and at + 0 == ARGV[i] + 0 then
			redis.call('ZREM', key, name)
			rest = rest - 1
		end
	end
end

-- nothing is for what has no script of its own: it limits a little longer.
local function nothing() end

local parts = {rate = rate, counter = counter, slices = slices, entry = entry, stamped = stamped, nothing = nothing}
for k, key in ipairs(KEYS) do
	parts[ARGV[5 * k - 4]](key, 5 * k - 3)
end
return 1
