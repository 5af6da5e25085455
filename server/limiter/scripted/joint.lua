-- Runs several calls of a script, one after the other and at one time. No KEYS, since these may be of several slots: a node of a cluster refuses each
-- call whose key it does not have. ARGV: for each call the key and four arguments.
-- Reply: the time in s and us, and for each call what became of it, with what was found of its key behind that; or the error that ended it.
local replies, codes = {{time[1], time[2]}}, {[0] = '0', '1', '2', '3'}
time[1], time[2] = time[1] + 0, time[2] + 0
for i = 1, #ARGV, 5 do
	time[3], time[4] = nil, nil
	local runs, reply = pcall(call, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
	if not runs then
		if type(reply) ~= 'table' then -- Redis 7.0 has the text alone
			reply = {err = reply}
		end
	elseif reply[4] then
		reply = codes[reply[3]] .. reply[4]
	else
		reply = reply[3]
	end
	replies[#replies + 1] = reply
end
return replies
