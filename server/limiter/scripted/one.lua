-- Decides one call by the part that decide is. KEYS[1]; ARGV: '1' if it may be charged, '0' for a look; then the part's arguments.
-- Reply: the time in s and us, the code, what was found, and what stamps has added.
local t = redis.call('TIME')
local code, found, plan = decide(KEYS[1], 2, t[1] + 0, t[2] + 0, ARGV[1] == '0')
t[3] = code
if code ~= left then
	t[4] = found
	if ARGV[1] == '1' and (code == charged or code == mended) then
		t[5] = run(plan)
	end
end
return t
