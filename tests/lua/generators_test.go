package lua

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// firstMoment is when the clock of each limiter begins, in microseconds: the year 2100, so that expiry times that are
// counted from it lie in the future of both servers.
const firstMoment = 4102444800_000_000

// caller makes the keys and arguments of one limiter's calls. Its clock goes on from call to call, so that both servers
// are told the same time.
type caller struct {
	*rand.Rand
	name string
	us   int64 // the clock
}

// limiters are the scripts of testdata/limiters and how each is called. ttl says that an answer counts the remaining
// lifetime of a key in real time.
var limiters = []struct {
	name string
	ttl  bool
	call func(c *caller) (keys, args []string)
}{
	{"gcra_float", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 10), c.pick("1", "5", "10", "1000"), c.pick("1", "60", "3600"), c.number(1, 3), c.seconds(), strconv.FormatInt(c.us%1_000_000, 10)}
	}},
	{"compare_and_set", false, func(c *caller) ([]string, []string) {
		if c.IntN(8) == 0 {
			return []string{c.name + ":none"}, []string{"1", "2", "0"}
		}
		return []string{"period_codes:0"}, []string{c.number(1, 9), c.number(1, 3), c.pick("0", "50000")}
	}},
	{"fixed_window_pttl", true, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 5), c.pick("50000000", "60000000")}
	}},
	{"bucket_nanos", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 9), "1000000000", strconv.FormatInt(c.us-firstMoment, 10) + "000"}
	}},
	{"json_state", false, func(c *caller) ([]string, []string) {
		state := fmt.Sprintf(`{"version":%s,"level":%s,"last":%d,"tags":["a",null,{"deep":%t}]}`,
			c.number(1, 3), c.pick("1.5", "0", "-2e3", `"none"`), c.us/1_000_000, c.IntN(2) == 0)
		return c.keys(1), []string{c.number(1, 3), state, "90000000"}
	}},
	{"bucket_strings", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("0.5", "1", "3.3333"), c.number(1, 9), c.fraction(), c.number(1, 4)}
	}},
	{"period_codes", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 12), "50000"}
	}},
	{"bucket_two_keys", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.number(1, 5), c.number(5, 20), c.seconds(), c.number(1, 6)}
	}},
	{"set_then_count", true, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 3), "70000"}
	}},
	{"hits_and_ttl", true, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("0", "0", "0", "1"), "80000000"}
	}},
	{"peek_pair", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(0, 3)}
	}},
	{"backoff", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 40), "100000000", c.pick("true", "false"), c.pick("true", "false")}
	}},
	{"weighted_windows", false, func(c *caller) ([]string, []string) {
		window := c.us / 10_000_000
		keys := []string{fmt.Sprintf("%s:%d", c.name, window), fmt.Sprintf("%s:%d", c.name, window-1)}
		return keys, []string{c.number(3, 12), c.millis(), "10000", c.number(1, 2)}
	}},
	{"refill_loop", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(5, 20), c.pick("500", "1000"), c.number(1, 3), c.millis(), c.number(1, 6)}
	}},
	{"job_submit", false, func(c *caller) ([]string, []string) {
		return c.jobKeys(), []string{c.millis(), c.number(1, 4), c.number(1, 1000), c.number(1, 4), c.pick("high", "low"), "max=10,gap=250;reservoir=100 nextAt=0"}
	}},
	{"job_free", false, func(c *caller) ([]string, []string) {
		keys := c.jobKeys()
		return []string{keys[0], keys[2]}, []string{c.millis(), c.number(1, 6), c.number(1, 9), c.pick("1000", "50000")}
	}},
	{"packed_options", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.packed(), c.millis()}
	}},
	{"gcra_string_now", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.millis(), c.number(1, 10), c.pick("100", "333.25", "1000"), c.number(1, 3)}
	}},
	{"gateway_count", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("3600", "86400")}
	}},
	{"gateway_quota", true, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(5, 50), c.pick("3600", "86400"), c.number(0, 3)}
	}},
	{"gateway_fields", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 10), c.number(5, 100), c.seconds(), c.number(1, 3)}
	}},
	{"gateway_maxn", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("0.000001", "2.5e-06", "1e-7"), c.number(1, 20), c.number(60, 7200), strconv.FormatInt(c.us, 10), c.pick("0", "500000", "2500.5")}
	}},
	{"gateway_log", false, func(c *caller) ([]string, []string) {
		ns := c.us*1000 + c.Int64N(1000)
		return c.keys(1), []string{strconv.FormatInt(ns, 10), strconv.FormatInt(ns-5_000_000_000, 10), c.number(2, 10), c.pick("60", "3600")}
	}},
	{"gateway_refill", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.number(0, 50), c.pick("1000", "60000"), c.number(0, 12), c.millis(), "80000000", c.pick("1", "1", "1", "0")}
	}},
	{"gateway_sync", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(-1, 40), strconv.FormatInt(c.us/1_000_000+86400, 10)}
	}},
	{"gateway_commit", true, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(5, 50), c.pick("60", "3600", "86400"), c.number(-1, 3)}
	}},
	{"log_micros", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{strconv.FormatInt(c.us, 10), "5000000", c.number(2, 10)}
	}},
	{"block_after", true, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{"60000000", c.number(2, 9), "70000000"}
	}},
	{"permits_packed", false, func(c *caller) ([]string, []string) {
		return c.keys(3), []string{"10", "5000", c.millis(), c.number(1, 11), c.bytes(16)}
	}},
	{"swap_bytes", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("", "\x00\x01\xff", "\x00\x01\xfe", "\r\n"), c.pick("\x00\x01\xff", "\x00\x01\xfe", "\r\n"), "90000000"}
	}},
	{"bucket_default_time", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.number(1, 5), c.number(1, 20), c.pick("", c.seconds()), c.number(1, 6), c.seconds()}
	}},
	{"moving_window", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(3, 12), c.fraction(), c.number(1, 30), c.number(1, 4)}
	}},
	{"clear_prefix", false, func(c *caller) ([]string, []string) {
		return nil, []string{c.name + ":", c.pick("refill", "refill", "leave"), c.number(0, 120)}
	}},
	{"many_rates", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.millis(), c.pick("1", "2", "200"), "1000", "5", "60000", "40", "3600000", "500"}
	}},
	{"incr_existing", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("1", "5", "-3", "x", "9223372036854775000"), c.pick("create", "", "", "")}
	}},
	{"lease", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("acquire", "acquire", "extend", "release", "look"), c.pick("token-a", "token-b"), "80000000"}
	}},
	{"gcra_inspect", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.number(1, 10), c.number(1, 30), c.pick("1", "60"), c.number(1, 12), c.fraction(), c.pick("look", "take")}
	}},
	{"leaky_formatted", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("0.1", "1", "2.5"), c.number(5, 20), c.pick("1", "0.3", "4"), c.fraction()}
	}},
	{"pop_due", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.millis(), c.pick("", "job-"+c.number(1, 500)), c.number(-1000, 3000)}
	}},
	{"duration_hash", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.fixed(), c.seconds(), c.number(1, 20), c.number(1, 9)}
	}},
	{"slots", false, func(c *caller) ([]string, []string) {
		return c.keys(4), []string{"slot-", c.pick("a", "b", "c", "d", "e"), "60000", c.pick("take", "release")}
	}},
	{"semaphore", false, func(c *caller) ([]string, []string) {
		ends := strconv.FormatInt(c.us/1_000_000+c.Int64N(60), 10)
		return c.keys(1), []string{"t" + c.number(1, 8), c.seconds(), ends, c.number(1, 5), c.pick("", "", "", "break")}
	}},
	{"unlink_tagged", false, func(c *caller) ([]string, []string) {
		return nil, []string{c.pick("clear_prefix:*", c.name+":*", "clear_prefix:?"), c.number(5, 60), c.name + ":" + c.number(1, 20)}
	}},
	{"concurrency_first_bool", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.number(1, 6), c.millis(), "id" + c.number(1, 40), c.number(0, 1), "3000"}
	}},
	{"window_with_totals", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.millis(), c.number(2, 9), "4000", c.bytes(4)}
	}},
	{"several_periods", false, func(c *caller) ([]string, []string) {
		day := strconv.FormatInt(c.us/1_000_000+86400, 10)
		return c.keys(3), []string{c.number(1, 9), c.pick("strict", ""), day, day, day}
	}},
	{"shared_window", false, func(c *caller) ([]string, []string) {
		keys := c.keys(3)
		return []string{keys[0], keys[1], keys[0], keys[2]}, []string{c.seconds(), c.pick("2", "100", "70000")}
	}},
	{"token_sums", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{c.pick("1", "250", "-40", "0.5"), c.pick("0", "70000"), c.number(0, 4000), "80000"}
	}},
	{"quota_echo", true, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{"1000", "70000", c.pick("0", "1", "2", "7")}
	}},
	{"excess", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.pick("1", "2.5", "10"), c.number(1, 10), c.millis(), c.pick("1", "0.5")}
	}},
	{"leaky_queue", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.millis(), c.pick("250", "1000"), c.number(1, 8), "c" + c.number(1, 500)}
	}},
	{"tiers", false, func(c *caller) ([]string, []string) {
		return c.keys(3), []string{c.number(1, 60), c.number(100, 1500), c.number(100, 1500), c.number(100, 1500)}
	}},
	{"bucketed_hash", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{"1000", c.number(5, 10), c.millis(), c.number(5, 30), c.number(1, 4)}
	}},
	{"penalty_box", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.millis(), "5000", "ip" + c.number(1, 5)}
	}},
	{"sampled", false, func(c *caller) ([]string, []string) {
		return c.keys(2), []string{"user" + c.number(1, 1000), c.number(10, 90)}
	}},
	{"reservation", false, func(c *caller) ([]string, []string) {
		return c.keys(1), []string{c.millis(), "r" + c.number(1, 12), c.pick("take", "take", "cancel"), c.number(1, 9)}
	}},
}

// step lets time pass: often none, mostly a little, now and then much.
func (c *caller) step() {
	switch c.IntN(10) {
	case 0, 1, 2:
	case 9:
		c.us += c.Int64N(60_000_000)
	default:
		c.us += c.Int64N(900_000)
	}
}

// keys are n keys of one of three callers.
func (c *caller) keys(n int) []string {
	who := c.IntN(3)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s:%d", c.name, who*10+i)
	}
	return keys
}

// jobKeys are shared by the two scripts that submit and free.
func (c *caller) jobKeys() []string {
	who := c.number(0, 2)
	return []string{"jobs:settings:" + who, "jobs:running:" + who, "jobs:clients:" + who}
}

func (c *caller) pick(from ...string) string { return from[c.IntN(len(from))] }

// number is an integer from least to most.
func (c *caller) number(least, most int) string { return strconv.Itoa(least + c.IntN(most-least+1)) }

func (c *caller) millis() string { return strconv.FormatInt(c.us/1000, 10) }

func (c *caller) seconds() string { return strconv.FormatInt(c.us/1_000_000, 10) }

// fraction is the time in seconds with as many decimals as it needs.
func (c *caller) fraction() string {
	return strconv.FormatFloat(float64(c.us)/1e6, 'f', -1, 64)
}

// fixed is the time in seconds with six decimals.
func (c *caller) fixed() string { return strconv.FormatFloat(float64(c.us)/1e6, 'f', 6, 64) }

func (c *caller) bytes(n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(c.IntN(256))
	}
	return string(raw)
}

// packed is a MessagePack map: name, priority, duration, max and a list of tags.
func (c *caller) packed() string {
	text := func(s string) string { return string(append([]byte{0xa0 | byte(len(s))}, s...)) }
	var duration [5]byte
	duration[0] = 0xce
	binary.BigEndian.PutUint32(duration[1:], uint32(1000+c.IntN(5000)))
	tags := "\x90"
	if n := c.IntN(4); n > 0 {
		tags = string([]byte{0x90 | byte(n)})
		for i := range n {
			tags += text("tag" + strconv.Itoa(i))
		}
	}
	return "\x85" + text("name") + text("job"+c.number(1, 300)) + text("priority") + string([]byte{byte(c.IntN(100))}) +
		text("duration") + string(duration[:]) + text("max") + string([]byte{byte(1 + c.IntN(5))}) + text("tags") + tags
}
