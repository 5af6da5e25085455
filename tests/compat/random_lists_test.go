package compat

// randomList asks for lists of few and of many elements, short ones and long ones, in small blocks too.
func randomList(d *dice) []string {
	key := d.name("l", 5)
	element := func() string {
		switch d.IntN(12) {
		case 0:
			return ""
		case 1:
			return d.name("a rather long element of a list, which soon fills a block and makes the next one begin: ", 5)
		}
		return d.name("e", 12)
	}
	elements := func() []string {
		return d.each(1+d.IntN(4), func() []string { return []string{element()} })
	}
	index := func() int { return d.IntN(40) - 20 }
	side := func() string { return d.one("LEFT", "RIGHT") }
	switch d.IntN(30) {
	case 0, 1, 2, 3:
		return words(d.one("LPUSH", "RPUSH"), key, elements())
	case 4:
		return words(d.one("LPUSHX", "RPUSHX"), key, elements())
	case 5, 6:
		return words(d.one("LPOP", "RPOP"), key)
	case 7:
		return words(d.one("LPOP", "RPOP"), key, d.IntN(12))
	case 8:
		return words("LSET", key, index(), element())
	case 9, 10, 11:
		return words("LINSERT", key, d.one("BEFORE", "AFTER"), element(), element())
	case 12:
		return words("LREM", key, d.IntN(7)-3, element())
	case 13:
		return words("LTRIM", key, d.IntN(6)-2, d.one("-1", "-2", "-4", "30", "100"))
	case 14, 15:
		return words("LMOVE", key, d.name("l", 5), side(), side())
	case 16:
		return words("RPOPLPUSH", key, d.name("l", 5))
	case 17:
		keys := d.names("l", 5, 3)
		return words("LMPOP", len(keys), keys, side(), d.maybe("COUNT", d.one("1", "3", "50")))
	case 18:
		return randomWait(d, "0.001")
	case 19, 20, 21:
		return words("LPOS", key, element(), d.maybe("RANK", d.one("1", "2", "-1", "-3")), d.maybe("COUNT", d.one("0", "1", "3")),
			d.maybe("MAXLEN", d.one("0", "5", "30")))
	case 22:
		return words("LINDEX", key, index())
	case 23:
		return words("LLEN", key)
	case 24:
		return words(d.one("COPY", "RENAME"), key, d.name("l", 5))
	case 25:
		return words("CONFIG", "SET", "list-max-listpack-size", d.one("1", "2", "7", "-1", "-2"))
	case 26:
		return d.one3([]string{"SET", key, "x"}, []string{"DEL", key}, []string{"OBJECT", "ENCODING", key})
	}
	return words("LRANGE", key, index(), index()+20)
}

// randomWait asks for an element of one of some lists, and to wait for so long.
func randomWait(d *dice, timeout string) []string {
	keys, side := d.names("l", 5, 3), d.one("LEFT", "RIGHT")
	switch d.IntN(5) {
	case 0:
		return words("BLMPOP", timeout, len(keys), keys, side, d.maybe("COUNT", d.one("1", "3")))
	case 1:
		return words("BLMOVE", keys[0], d.name("l", 5), side, d.one("LEFT", "RIGHT"), timeout)
	case 2:
		return words("BRPOPLPUSH", keys[0], d.name("l", 5), timeout)
	}
	return words(d.one("BLPOP", "BRPOP"), keys, timeout)
}

// sortedMembers is a script that shows a set's members in a fixed order.
const sortedMembers = "local t = redis.call('SMEMBERS', KEYS[1]) table.sort(t) return t"

// randomSet asks for sets of whole numbers, few and many, wide and narrow, and of other texts. Members come in no fixed order unless
// they are few numbers, so that they are sorted first.
func randomSet(d *dice) []string {
	key := d.name("s", 6)
	member := func() string {
		switch d.IntN(40) {
		case 0:
			return d.one("70000", "-70000", "5000000000", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "01", "+1", "")
		case 1, 2:
			return d.name("m", 200)
		}
		return d.name("", 100)
	}
	members := d.each(1+d.IntN(5), func() []string { return []string{member()} })
	keys := d.names("s", 6, 4)
	switch d.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		return words("SADD", key, members)
	case 6, 7, 8:
		return words("SREM", key, members)
	case 9:
		return words("SISMEMBER", key, member())
	case 10:
		return words("SMISMEMBER", key, members)
	case 11:
		return words("SCARD", key)
	case 12:
		return words("SMOVE", key, d.name("s", 6), member())
	case 13:
		return words(d.one("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), key, keys)
	case 14:
		return words("SINTERCARD", len(keys), keys, d.maybe("LIMIT", d.one("0", "1", "5")))
	case 15:
		return words("OBJECT", "ENCODING", key)
	case 16:
		return words(d.one("COPY", "RENAME"), key, d.name("s", 6))
	case 17:
		return d.one3([]string{"SET", key, "x"}, []string{"DEL", key}, []string{"SPOP", key, "1000000", "x"})
	case 18:
		return words("CONFIG", "SET", "set-max-intset-entries", d.one("512", "20", "5"))
	case 19:
		return words("EVAL", "local t = redis.call(ARGV[1], unpack(KEYS)) table.sort(t) return t", len(keys), keys, d.one("SINTER", "SUNION", "SDIFF"))
	}
	return words("EVAL", sortedMembers, 1, key)
}

// one3 returns one of three commands.
func (d *dice) one3(a, b, c []string) []string { return [][]string{a, b, c}[d.IntN(3)] }
