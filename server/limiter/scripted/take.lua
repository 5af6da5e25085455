-- Decides several calls, each by a part: all are charged, or none is.
-- KEYS: different from each other. ARGV: '1' if they may be charged, '0' for a look; then, for each key, the part's name, how many arguments it
-- has, and these.
-- Reply: the time in s and us; 'left' alone if the caller is to decide, or 0; and for each key the code, what was found, and what stamps has
-- added.
local parts = {rate = rate, counter = counter, slices = slices, log = log, lease = lease}
local t = redis.call('TIME')
local s, us = t[1] + 0, t[2] + 0
local answers, plans, pass = {}, {}, true
local i = 2
for k, key in ipairs(KEYS) do
	local code, found, plan = parts[ARGV[i]](key, i + 2, s, us, true)
	if code == left then
		t[3] = left
		return t
	end
	if code == limited or code == mended then
		pass = false
	end
	answers[k], plans[k] = {code, found}, plan
	i = i + 2 + ARGV[i + 1]
end
if ARGV[1] == '1' then
	for k, answer in ipairs(answers) do
		if pass and answer[1] == charged or answer[1] == mended then
			answer[3] = run(plans[k])
		end
	end
end
t[3], t[4] = 0, answers
return t
