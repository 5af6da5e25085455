-- log decides by a list of what has passed. Arguments: the cost; limit - cost; the window in ms; and '1' with an id, or '0' without one.
-- Found: how many entries count, how many come before them, the time of the id, and ranks, each with its time. If all is set, the ranks
-- answer both the call and a look.
local function log(key, i, s, us, all)
	local now = s * 1000 + math.floor(us / 1000)
	local cost, room, window = ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2] + 0
	local id = ARGV[i + 3] == '1' and ARGV[i + 4]
	local used, expired, held, found, at = entriesOf(key, now - window, whole(now), id)
	local inside = held and held > now - window and held <= now
	local charges = cost > 0 and not inside and used <= room
	local newest = used > 0 and (all or not charges) and at(0)
	local plan = {}
	if id and cost < 0 then
		if not inside then
			return passes, found
		end
		plan[1] = {'ZREM', key, id}
		if used > 1 then
			if newest == held then
				newest = at(1)
			end
			plan[2] = {'PEXPIREAT', key, newest + window}
		end
		return charged, found, plan
	elseif cost < 0 then
		local back = math.min(-cost, used)
		if back == 0 then
			return passes, found
		elseif back == used then
			return charged, found, {{'DEL', key}}
		end
		plan[1] = {'ZREMRANGEBYRANK', key, expired + used - back, expired + used - 1}
		trim(plan, key, expired)
		plan[#plan + 1] = {'PEXPIREAT', key, at(back) + window}
		return charged, found, plan
	elseif inside then
		return passes, found
	elseif used > room then
		if room > 0 then
			at(room)
		end
		return limited, found
	elseif cost == 0 then
		return passes, found
	end
	trim(plan, key, expired)
	if id then
		plan[#plan + 1] = {'ZADD', key, whole(now), id}
	else
		plan[#plan + 1] = {key, whole(now), cost, stamps = true}
	end
	plan[#plan + 1] = {'PEXPIREAT', key, now + window}
	return charged, found, plan
end
