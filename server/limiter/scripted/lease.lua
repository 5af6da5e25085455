-- lease decides about one of so many leases. Arguments: what is to become of it: 'acquire', 'renew' or 'release'; the cost, 1 or 0; limit -
-- cost; how long a lease is, in ms; its id; and '1' if the caller has named it, '0' if it was drawn. Found: as log's.
local function lease(key, i, s, us)
	local now = s * 1000 + math.floor(us / 1000)
	local what, cost, room, length, id = ARGV[i], ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0, ARGV[i + 4]
	local used, expired, held, found, at = entriesOf(key, now, '+inf', ARGV[i + 5] == '1' and id)
	local mine = held and held > now
	local last = used > 0 and at(0) or 0
	if mine and last == held then -- or it is the other way round, and they end together
		last = used > 1 and at(1) or 0
	end
	local plan = {}
	if what == 'release' then
		if not mine then
			return passes, found
		elseif used == 1 then
			return charged, found, {{'DEL', key}}
		end
		plan[1] = {'ZREM', key, id}
		trim(plan, key, expired)
		plan[#plan + 1] = {'PEXPIREAT', key, last}
		return charged, found, plan
	elseif what == 'renew' then
		if not mine then
			return passes, found
		end
	elseif not mine and used > room then
		if room > 0 then
			at(room)
		end
		return limited, found
	elseif cost == 0 then
		return passes, found
	end
	trim(plan, key, expired)
	plan[#plan + 1] = {'ZADD', key, whole(now + length), id}
	plan[#plan + 1] = {'PEXPIREAT', key, math.max(last, now + length)}
	return charged, found, plan
end
