-- Charges the first of several costs that passes, for a lease, by the part that decide is. KEYS[1]; ARGV: how many arguments the part has, and
-- then these for each cost. Reply: the time in s and us, the code, what was found, and which cost the code is about, from 1: the last one if
-- none passes.
local t = redis.call('TIME')
local size = ARGV[1] + 0
local code, found, plan, n = limited, nil, nil, 0
while (code == limited or code == mended) and (n + 1) * size < #ARGV do
	code, found, plan = decide(KEYS[1], 2 + n * size, t[1] + 0, t[2] + 0)
	n = n + 1
end
t[3] = code
if code ~= left then
	t[4], t[5] = found, n
	if code == charged or code == mended then
		run(plan)
	end
end
return t
