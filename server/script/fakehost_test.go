package script

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tidwall/redcon"
)

// fakeHost answers a few commands from a map, enough for the scripts of the
// tests and the benchmarks.
type fakeHost struct {
	values      map[string]string
	calls       [][]string
	keepCalls   bool
	replies     map[string]string // by the command in upper case
	reply       []byte
	lines       []string
	replication int
}

func newFakeHost() *fakeHost { return &fakeHost{values: map[string]string{}} }

func (h *fakeHost) Call(args [][]byte, resp3 bool) []byte {
	if h.keepCalls {
		var call []string
		for _, arg := range args {
			call = append(call, string(arg))
		}
		h.calls = append(h.calls, call)
	}
	h.reply = h.reply[:0]
	if reply, ok := h.replies[string(bytes.ToUpper(args[0]))]; ok {
		return append(h.reply, reply...)
	}
	switch string(args[0]) {
	case "SLOW":
		time.Sleep(5 * time.Millisecond)
		h.reply = append(h.reply, "+OK\r\n"...)
	case "GET", "get":
		if v, ok := h.values[string(args[1])]; ok {
			h.reply = redcon.AppendBulkString(h.reply, v)
		} else {
			h.reply = append(h.reply, "$-1\r\n"...)
		}
	case "SET", "set":
		h.values[string(args[1])] = string(args[2])
		h.reply = append(h.reply, "+OK\r\n"...)
	case "ZCARD", "ZADD", "ZREMRANGEBYSCORE", "PEXPIRE":
		h.reply = append(h.reply, ":1\r\n"...)
	case "ECHO":
		h.reply = redcon.AppendBulk(h.reply, args[1])
	case "FAIL":
		h.reply = append(h.reply, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"...)
	default:
		h.reply = append(h.reply, "-ERR Unknown Redis command called from script\r\n"...)
	}
	return h.reply
}

func (h *fakeHost) Log(level int, text string) {
	h.lines = append(h.lines, strconv.Itoa(level)+" "+text)
}

func (h *fakeHost) ACLCheck(args [][]byte) (allowed, known bool) {
	name := string(args[0])
	return name != "FORBIDDEN", name != "NOPE"
}

func (h *fakeHost) SetReplication(flags int) { h.replication = flags }
