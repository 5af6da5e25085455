-- What the parts of scripts share. A part decides one call and writes nothing: it returns a code, what it has found, and the commands that
-- have to be run if the call is to be charged. The codes:
local passes, charged, left, limited, mended = 0, 1, 2, 3, 4 -- mended: limited, and something is to be written all the same

-- plain reports whether a text is a whole number from 0 on, as Redis writes it, and one with which doubles are exact.
local function plain(text)
	return #text <= 15 and (text == '0' or string.find(text, '^[1-9]%d*$') ~= nil)
end

-- whole renders a whole number below 2^53.
local function whole(number)
	return string.format('%.0f', number)
end

-- expiry returns when a key expires, in ms, -1 for never, or -2 for a key that does not exist. Before Redis 7.0 only what is left can be
-- asked for, so that the clock has to show the same millisecond before and after.
local function expiry(key)
	if redis.REDIS_VERSION_NUM then
		return redis.call('PEXPIRETIME', key)
	end
	local at
	for _ = 1, 5 do
		local before = redis.call('TIME')
		local rest = redis.call('PTTL', key)
		local after = redis.call('TIME')
		if rest < 0 then
			return rest
		end
		local ms = math.floor(before[2] / 1000)
		at = before[1] * 1000 + ms + rest
		if before[1] == after[1] and ms == math.floor(after[2] / 1000) then
			return at
		end
	end
	return at
end

-- instant is a score as a time in ms; one between two counts as the later.
local function instant(score)
	if score == 'inf' then
		return 9007199254740992
	elseif score == '-inf' then
		return -9007199254740992
	end
	return math.ceil(math.max(-9007199254740992, math.min(score + 0, 9007199254740992)))
end

-- stamps adds so many entries of one time that have no ids of their own, and returns the first and the last of their numbers.
local function stamps(key, ms, count)
	local first = redis.call('ZCOUNT', key, ms, ms)
	local number = first
	while count > 0 do
		local words = {}
		for _ = 1, math.min(count, 1000) do
			words[#words + 1] = ms
			words[#words + 1] = ms .. '-' .. number
			number = number + 1
		end
		count = count - redis.call('ZADD', key, 'NX', unpack(words)) -- but for names that are taken
	end
	return {first, number - 1}
end

-- allowed ends the script with the server's error, before anything is written, if its caller may not run a command that comes behind others.
-- Redis 6.2 cannot tell beforehand.
local function allowed(words)
	if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(words)) then
		redis.call(unpack(words))
	end
end

-- run runs the commands of a plan: lists of words, and of what stamps is called with. When a key expires is said last.
local function run(plan)
	local added
	if plan[2] then
		allowed(plan[#plan])
	end
	for _, words in ipairs(plan) do
		if words.stamps then
			added = stamps(unpack(words))
		else
			redis.call(unpack(words))
		end
	end
	return added
end
