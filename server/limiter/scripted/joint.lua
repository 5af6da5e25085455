-- Runs several calls of a script, one after the other and at one time. No KEYS, since these may be of several slots: a node of a cluster refuses each
-- call whose key it does not have. ARGV: for each call the key and four arguments.
-- Reply: for each call its reply, or the error that ended it.
local replies = {}
for i = 1, #ARGV, 5 do
	local runs, reply = pcall(call, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
	if not runs and type(reply) ~= 'table' then -- Redis 7.0 has the text alone
		reply = {err = reply}
	end
	replies[#replies + 1] = reply
end
return replies
