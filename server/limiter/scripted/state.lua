-- stateOf returns a key's state, whole: when it expires, its text, its fields and values, or its members and scores; and a digest of all
-- that. Or an error.
local function stateOf(key, kind)
	local state
	if kind == 'number' then
		state = redis.pcall('GET', key)
		if not state then
			return {}, 'none'
		elseif type(state) ~= 'table' then
			state = {state}
		end
	elseif kind == 'slices' then
		local size = redis.pcall('HLEN', key)
		if type(size) == 'table' then
			return size
		elseif size > 4000 then
			return {err = "ERR the key holds a value that is no limiter's state"}
		end
		state = redis.pcall('HGETALL', key)
	else
		local size = redis.pcall('ZCARD', key)
		if type(size) == 'table' then
			return size
		elseif size > 10000 then
			return {err = 'ERR value is not an integer or out of range'}
		end
		state = redis.pcall('ZRANGE', key, 0, -1, 'WITHSCORES')
	end
	if state.err then
		return state
	elseif #state == 0 then
		return state, 'none'
	end
	local at = expiry(key)
	return state, at .. ' ' .. #state .. ' ' .. redis.sha1hex(table.concat(state, '\0')), at
end
