-- entriesOf tells of a sorted set whose scores are times in ms: how many are after one time and up to another ('+inf': all), how many come
-- before those, and the time of an id, or false. The function it returns finds the time of one of those that count, by its rank
-- from the newest, and notes it in found.
local function entriesOf(key, after, to, id)
	local used = redis.call('ZCOUNT', key, '(' .. whole(after), to)
	local expired = redis.call('ZCOUNT', key, '-inf', whole(after))
	local held = id and redis.call('ZSCORE', key, id)
	held = held and instant(held)
	local found = {used, expired, held}
	return used, expired, held, found, function(rank)
		local place = expired + used - 1 - rank
		local at = instant(redis.call('ZRANGE', key, place, place, 'WITHSCORES')[2])
		found[#found + 1] = rank
		found[#found + 1] = at
		return at
	end
end

-- trim adds to a plan that some of the entries that come before those that count go. No call takes long, however many they are.
local function trim(plan, key, expired)
	if expired > 0 then
		plan[#plan + 1] = {'ZREMRANGEBYRANK', key, 0, math.min(expired, 8) - 1}
	end
end
