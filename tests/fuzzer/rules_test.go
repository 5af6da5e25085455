package fuzzer

import (
	"strconv"
	"strings"
)

// skipped commands would end the server or a connection, stop it for long, or have connections get what is not an answer to their own
// commands. Each has tests of its own.
var skipped = map[string]string{
	"shutdown":     "ends the server",
	"quit":         "ends the connection",
	"client|kill":  "ends connections",
	"client|pause": "stops all connections",
	"client|reply": "leaves replies out",
	"monitor":      "shows the others' commands",
	"debug":        "stops the server",
	"config|set":   "may forbid what the test needs, such as memory",
	"acl|load":     "ends connections where there is a file",
	"hello":        "changes what a reply looks like; each connection says it once a batch",
	"acl|deluser":  "ends connections",
	"replicaof":    "looks for hosts of made-up names, and has writes refused",
	"slaveof":      "as replicaof",
	"failover":     "stops all writes while a replica is to take over",
	"psync":        "makes the connection a replica's, which is sent data and not replies",
	"sync":         "as psync",
	"replconf":     "is not answered where it acknowledges",
}

// rare commands take long, or undo what the others have built up.
var rare = map[string]bool{
	"flushall": true, "flushdb": true, "save": true, "bgsave": true, "bgrewriteaof": true, "swapdb": true, "reset": true, "script|flush": true, "function|flush": true,
	"command": true, "command|docs": true, "command|info": true, "command|list": true, "info": true, "acl|cat": true, "auth": true, "wait": true,
	"config|get": true, "latency|histogram": true, "keys": true,
}

// subscribing commands are answered by a push for each name, not by a reply. They come first in batches of their own.
var subscribing = map[string]bool{
	"subscribe": true, "psubscribe": true, "ssubscribe": true, "unsubscribe": true, "punsubscribe": true, "sunsubscribe": true,
}

// notSubscribed commands are not sent by a subscriber: rules that change may close the connection of one that has another user, and, as
// in Redis 7.0, what one publishes to itself in a transaction stands in the middle of EXEC's reply.
var notSubscribed = map[string]bool{"auth": true, "publish": true, "spublish": true}

// allowed reports whether a line may be sent, whatever it was drawn for: the default user stays as it is, or nobody could look at the
// end, and so do the other connections.
func allowed(line []string) bool {
	name := strings.ToLower(line[0])
	if len(line) > 1 {
		if _, no := skipped[name+"|"+strings.ToLower(line[1])]; no {
			return false
		}
		if name == "acl" && strings.EqualFold(line[1], "setuser") {
			return len(line) > 2 && isUser(line[2])
		}
	}
	_, no := skipped[name]
	return !no
}

func isUser(name string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "u"))
	return err == nil && strings.HasPrefix(name, "u") && n >= 0 && n < users
}

// ownLines make of some commands' arguments what their declaration does not tell.
var ownLines = map[string]func(d *dice, line []string) []string{
	"acl|setuser": func(d *dice, line []string) []string {
		line = append(line[:2], "u"+strconv.Itoa(d.IntN(users)))
		for range d.IntN(5) {
			c := d.commands[d.IntN(len(d.commands))]
			line = append(line, d.pick("on", "off", "nopass", ">p", "+@all", "-@all", "~*", "~k1*", "%R~k2*", "&*", "+@read", "-@write", "allkeys", "resetkeys",
				"(+get ~k3)", "(%W~k*", "reset", "clearselectors", "+"+c.Name(), "-"+c.Name(), "+@"+d.pick("string", "throttle", "nosuch")))
		}
		return line
	},
	"auth":          func(d *dice, _ []string) []string { return []string{"auth", "u" + strconv.Itoa(d.IntN(users)), "p"} },
	"xgroup|create": func(d *dice, line []string) []string { return append(line, "MKSTREAM") },
	"rl.policy|set": func(d *dice, _ []string) []string {
		return []string{"rl.policy", "set", d.pick("login", "api"), d.pick("LOG", "FIXED", "SLIDING", "GCRA"), strconv.Itoa(d.IntN(9)), "60s"}
	},
	"rl.take": func(d *dice, _ []string) []string {
		return []string{"rl.take", "2", d.pick("login", "api"), d.key(), d.pick("login", "api", "none"), d.key(), d.pick("PEEK", "COST"), "1"}
	},
	"eval": scriptLine, "eval_ro": scriptLine,
	"restore": func(d *dice, line []string) []string { return append(line, d.pick("REPLACE", "ABSTTL")) },
}

func scriptLine(d *dice, line []string) []string {
	return []string{line[0], d.script(), "1", d.key(), d.pick("get", "1", "x", "incr"), d.key()}
}
