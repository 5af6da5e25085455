-- atMost reports whether a product is at most another, of factors that are whole and not negative, or nil where doubles cannot tell.
local function atMost(a, b, c, d)
	local x, y = a * b, c * d
	if x < 9007199254740992 and y < 9007199254740992 or math.abs(x - y) > (x + y) * 1e-15 then
		return x <= y
	end
end

-- slices decides for a sliding window that is cut into slices: fields are the times in ms at which they begin, values the counts.
-- Arguments: the cost; limit - cost; the length of a slice in ms; and how many they are.
-- Found: all fields and values in one text.
local function slices(key, i, s, us)
	local now = s * 1000 + math.floor(us / 1000)
	local cost, room, length, n = ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0
	local elapsed = now % length
	local current = now - elapsed
	local found = redis.call('HGETALL', key)
	if #found > 8000 then
		return left
	end
	local counts, full, fading, plan = {}, 0, 0, {}
	for k = 1, #found, 2 do
		local start, count = found[k], found[k + 1]
		if not plain(start) or not plain(count) then
			return left
		end
		start, count = start + 0, count + 0
		local age = (current - start) / length
		if age > n then
			if #plan < 8 then -- no call takes long, however many have gone
				plan[#plan + 1] = {'HDEL', key, found[k]}
			end
		elseif start <= now then
			if age < 0 or age % 1 ~= 0 then -- a slice of another length, from before the limit was changed
				return left
			end
			counts[age] = count
			if age < n then
				full = full + count
			else
				fading = count
			end
		end
	end
	if full + fading > 9000000000000000 then
		return left
	end
	found = {table.concat(found, ' ')}
	local newest = 0
	if cost < 0 then
		local back = -cost
		if back > full then -- so that some of what is being forgotten would be given back, of which a part counts
			if fading > 0 then
				return left
			end
			back = full
		end
		if back == 0 then
			return passes, found
		end
		local k = 0
		while back > 0 do
			local count = counts[k]
			if count then
				local taken = math.min(count, back)
				back, count = back - taken, count - taken
				counts[k] = count
				if count > 0 then
					plan[#plan + 1] = {'HSET', key, whole(current - k * length), whole(count)}
				else
					plan[#plan + 1] = {'HDEL', key, whole(current - k * length)}
				end
			end
			k = k + 1
		end
		while newest <= n and (counts[newest] or 0) == 0 do
			newest = newest + 1
		end
		if newest > n then
			return charged, found, {{'DEL', key}}
		end
	else
		local fits = room >= full
		if fits then
			fits = atMost(fading, length - elapsed, room - full, length)
			if fits == nil then
				return left
			end
		end
		if not fits then
			return limited, found
		elseif cost == 0 then
			return passes, found
		end
		plan[#plan + 1] = {'HSET', key, whole(current), whole((counts[0] or 0) + cost)}
	end
	plan[#plan + 1] = {'PEXPIREAT', key, current + (n + 1 - newest) * length}
	return charged, found, plan
end
