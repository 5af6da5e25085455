-- counter decides for a count within one window at a time. Arguments: the cost; limit - cost; and how windows end: 'first' and their length
-- for those that begin with their first call, 'aligned' and their length, or 'ends' and four instants in a row at which windows end.
-- Found: the text, and when the key expires.
local function counter(key, i, s, us)
	local now = s * 1000 + math.floor(us / 1000)
	local cost, room, how, length = ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2], ARGV[i + 3] + 0
	local last
	if how == 'first' then
		last = now + length
	elseif how == 'aligned' then
		last = now - now % length + length
	else
		for k = i + 4, i + 6 do
			if now >= ARGV[k - 1] + 0 and now < ARGV[k] + 0 then
				last = ARGV[k] + 0
			end
		end
		if not last then
			return left
		end
	end
	local v = redis.call('GET', key)
	local used, at = 0, -2
	if v then
		at = expiry(key)
		if not plain(v) then
			return left
		end
	end
	local exists = v and (at == -1 or at > now)
	local mend = false
	if exists then
		used = v + 0
		if at ~= -1 then
			last = math.min(last, at)
		end
		mend = at ~= last
	end
	local code, after = passes, used
	if cost < 0 then
		after = used - math.min(used, -cost)
		if after ~= used or mend then
			code = charged
		end
	elseif used > room then
		code = limited
		if mend and cost > 0 then
			code = mended
		end
	elseif cost > 0 then
		code, after = charged, used + cost
	end
	return code, {v, at}, {{'SET', key, whole(after), 'PXAT', last}}
end
