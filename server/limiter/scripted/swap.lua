-- Runs commands if the states of keys still are what load has found. KEYS; ARGV: for each key its kind and its digest; then, for each
-- command, how many words it has, and these, with the number of a key in place of the second.
-- Reply: 1, or 0 if a state has changed, so that nothing was done.
for k, key in ipairs(KEYS) do
	local _, digest = stateOf(key, ARGV[2 * k - 1])
	if digest ~= ARGV[2 * k] then
		return 0
	end
end
for _, running in ipairs({false, true}) do -- first they are only looked at
	local i = 2 * #KEYS + 1
	while i <= #ARGV do
		local size = ARGV[i] + 0
		local words = {unpack(ARGV, i + 1, i + size)}
		words[2] = KEYS[words[2] + 0]
		if running then
			redis.call(unpack(words))
		else
			allowed(words)
		end
		i = i + size + 1
	end
end
return 1
