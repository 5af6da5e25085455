package lua

import "strings"

// programKeys is what the programs of redisCall find. None of them writes: a script that has written could not be ended.
var programKeys = []string{
	"SET text abc", "SET number 12", "RPUSH list a 2 c", "HSET hash f v", "SADD set m", "ZADD sorted 1.5 m", "SETBIT bits 7 1",
}

// libraryCalls are calls of the libraries. The table of {table} has no holes: where one has, each server has its own length. Of the JSON of a table only
// the length is compared: the order of keys is each server's own. A place to insert at is
// near: the reference moves what is between the end and one such as 1e15, in C for minutes, and cannot be stopped meanwhile.
var libraryCalls = strings.Split(strings.TrimSpace(`
unpack({table})
unpack({({a}) or 1, {b} or 1, {c} or 1}, {b})
unpack({{a}, 1, {b}}, 1, 3)
select({a}, {b}, {c})
select(-1, {a}, {b})
select(-2, {a}, {b})
next({{a}})
type({a})
tostring({a})
tonumber({a})
tonumber({a}, {b})
tonumber('1a', 16)
#tostring(nil)
collectgarbage({a})
pcall(ipairs, {a})
table.insert({table}, {b})
table.insert({table}, {place}, {c})
table.remove({table})
table.remove({table}, {b})
table.concat({table}, {b})
table.concat({({a}) or 1, {b} or 2}, {c})
table.concat({({a}) or 1, 1, 2}, ',', {b}, {c})
table.sort({({a}) or 1, {b} or 2, {c} or 3})
table.sort({3, 1, 2, 5}, {a})
table.sort({table})
table.maxn({a})
table.foreach({table}, many)
table.foreachi({table}, {b})
table.getn({table})
string.format('%d %s', {a}, {b})
string.format('%5.1f|%-4s|%q', {a}, {b}, {c})
string.format({a}, {b})
string.format('%x %c %g', {a}, 65, {b})
('x y'):gsub('%w', {a})
('abc'):gsub('(b)(c)', {a})
('abc'):gsub('', {a})
string.gsub({a}, {b}, {c})
('abcabc'):gsub('b', {a}, {b})
('x y'):find({a}, {b})
string.find({a}, {b}, 1, true)
string.match({a}, '()(.)')
('k=v, w'):match('(%w+)=(%w*)', {a})
('(a(b))'):match('%b()')
('THE end'):gsub('%f[%a]%a+', {a})
string.rep({a}, 2)
string.sub({a}, {b}, {c})
string.byte({a}, {b})
string.char({a})
string.len({a})
string.reverse({a})
string.upper({a})
pcall(('x').rep, 'x', {table})
math.floor({a})
math.max({a}, {b})
math.min({a})
math.fmod({a}, {b})
math.modf({a})
math.huge
math.abs({a})
bit.band({a}, {b})
bit.tohex({a})
bit.lshift({a}, 3)
cjson.encode(tonumber({a}) or tostring({b}))
string.len(cjson.encode({a}))
string.len(cjson.encode({{a}, {b}}))
cjson.decode(cjson.encode({a = {a}}))
cjson.decode({a})
cmsgpack.unpack(cmsgpack.pack({a}, {b}))
struct.pack('>hs', {a}, {b})
struct.unpack('>h', {a})
`), "\n")

// libraryCall is a call of a library with whatever comes, mostly by pcall.
func (w *writer) libraryCall(d int) string {
	call := w.pick(libraryCalls...)
	if open := strings.IndexByte(call, '('); w.IntN(3) > 0 && open > 0 && !strings.HasPrefix(call, "pcall") {
		call = "pcall(" + call[:open] + ", " + call[open+1:]
	}
	table := w.constructorOfItems()
	if w.IntN(4) == 0 {
		table = w.pick("nil", "'x'", "2", "note")
	}
	place := w.pick("1", "2", "3", "4", "5", "0", "-1", "1.5", "'2'", "'x'", "nil", "true", "{}")
	return strings.NewReplacer("{place}", place, "{a}", w.expr(d), "{b}", w.expr(0), "{c}", w.expr(0), "{table}", table).Replace(call)
}

// chunk is text that is compiled as the program runs.
func (w *writer) chunk() {
	name := w.fresh()
	switch w.IntN(5) {
	case 0:
		w.line("local " + name + " = loadstring([==[" + w.unseen(func() { w.block(2); w.line("return " + w.list(2)) }) + "]==])")
	case 1:
		w.line("local " + name + " = assert(loadstring('return " + w.pick("...", "1, 2", "function(a) return a end", "nil .. 1", "x", "1 +") + "', " + w.pick("'@f'", "'=f'", "'f'", "nil") + "))")
	case 2:
		pieces := w.fresh()
		most, piece := w.pick("2", "4"), w.expr(1) // which may be seen to be called
		w.line("local " + pieces + " = 0 local " + name + " = load(function() " + pieces + " = " + pieces + " + 1 if " + pieces + " < " + most + " then return " + piece + " end end)")
	case 3:
		w.line("redis.setresp(" + w.pick("2", "3", w.expr(1)) + ")")
		return
	case 4:
		w.line("local " + name + " = " + w.redisCall(1))
	}
	w.names = append(w.names, name)
	w.line("note(pcall(" + name + ", " + w.list(2) + "))")
}

// unseen is what write writes, where no local variable is visible.
func (w *writer) unseen(write func()) string {
	names, out, vararg, loops := w.names, w.out.String(), w.vararg, w.loops
	w.names, w.vararg, w.loops = w.names[:1:1], []bool{true}, 0
	w.out.Reset()
	write()
	text := w.out.String()
	w.out.Reset()
	w.out.WriteString(out)
	w.names, w.vararg, w.loops = names, vararg, loops
	return strings.NewReplacer("note", "type", "many", "select").Replace(text)
}

// redisCall is a call of one of Redis's own functions.
func (w *writer) redisCall(d int) string {
	key := w.pick("'text'", "'number'", "'list'", "'hash'", "'set'", "'sorted'", "'bits'", "'none'", w.expr(d))
	call := w.pick("redis.call", "redis.pcall", "redis.pcall")
	switch w.IntN(16) {
	case 0, 1, 2:
		return call + "(" + w.pick("'GET'", "'get'", "'LLEN'", "'STRLEN'", "'TYPE'", "'HGETALL'", "'SMEMBERS'", "'EXISTS'", "'TTL'", "'HKEYS'", "'BITCOUNT'", "'PING'", "'ECHO'") + ", " + key + ")"
	case 3:
		return call + "('LRANGE', " + key + ", " + w.pick("0, -1", "1, 1", "'0', '0'", w.expr(0)+", "+w.expr(0)) + ")"
	case 4:
		return call + "('HMGET', " + key + ", 'f', " + w.expr(0) + ")"
	case 5:
		return call + "('ZSCORE', " + key + ", 'm')"
	case 6:
		return call + "('ZRANGE', " + key + ", 0, -1, 'WITHSCORES')"
	case 7:
		return call + "(" + w.list(2) + ")"
	case 8:
		return "redis.sha1hex(" + w.list(1) + ")"
	case 9:
		return w.pick("redis.error_reply", "redis.status_reply") + "(" + w.pick("'ERR x'", "'-x y'", "{}", "1.5", "nil", w.variable()+", 1") + ")"
	case 10:
		return "pcall(" + call + ", 'GET', " + key + ")"
	case 11:
		return "pcall(" + call + ", " + w.list(2) + ")"
	case 12:
		return "pcall(redis." + w.pick("sha1hex", "status_reply", "setresp", "log", "replicate_commands", "acl_check_cmd", "set_repl") + ", " + w.list(2) + ")"
	case 13:
		return call + "('MGET', 'text', " + key + ", 'none')"
	case 14:
		return call + "('SISMEMBER', " + key + ", 'm')"
	}
	return w.pick("redis.nosuch", "redis.LOG_WARNING", "nosuch", "redis.REPL_ALL", "_G.nosuch", "redis.call", "KEYS[1]", "#ARGV")
}
