-- increx adds to a number if the sum stays within bounds. Arguments: what is added; the bounds; '1' if a sum beyond one becomes the bound; then
-- 'keep' for an expiry that stays, 'never', 'at' or 'in'; the time in ms; and '1' if only a key without an expiry gets it.
-- Found: the text, and when the key expires.
local function increx(key, i, s, us)
	local now = s * 1000 + math.floor(us / 1000)
	local low, high, how, time = ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 4], ARGV[i + 5] + 0
	local v = redis.call('GET', key)
	local at, current = -2, 0
	if v then
		at = expiry(key)
		local digits = string.match(v, '^%-?([1-9]%d*)$')
		if v ~= '0' and not (digits and #digits <= 15) then
			return left
		elseif at == -1 or at >= now then -- up to the end of its last millisecond
			current = v + 0
		else
			at = -2
		end
	end
	local found = {v, at}
	local sum = current + ARGV[i]
	if sum < low or sum > high then
		if ARGV[i + 3] ~= '1' then
			return passes, found
		end
		sum = math.max(low, math.min(sum, high))
	end
	local last, kept = math.max(at, -1), true
	if how == 'never' then
		last, kept = -1, false
	elseif how ~= 'keep' and (ARGV[i + 6] ~= '1' or last == -1) then
		last, kept = time, false
		if how == 'in' then
			last = now + time
		end
	end
	if last == -1 then
		return charged, found, {{'SET', key, whole(sum)}}
	elseif kept or last > now then
		return charged, found, {{'SET', key, whole(sum), 'PXAT', last}}
	elseif at ~= -2 then
		return charged, found, {{'DEL', key}}
	end
	return passes, found
end
