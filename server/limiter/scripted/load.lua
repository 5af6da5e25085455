-- Answers the states of keys, for callers that decide themselves. KEYS; ARGV: the kind of each.
-- Reply: the time in s and us, and for each key its digest, when it expires, and its state; or an error.
local t = redis.call('TIME')
for k, key in ipairs(KEYS) do
	local state, digest, at = stateOf(key, ARGV[k])
	if state.err then
		t[k + 2] = {'error', state.err}
	else
		t[k + 2] = {digest, at or -2, state}
	end
end
return t
