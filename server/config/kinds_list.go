package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/number"
)

// maxBindAddresses is how many addresses bind and metrics-bind take.
const maxBindAddresses = 16

// list is what all kinds of several values have in common.
type list struct{}

func (list) several() bool { return true }

// bindKind is a list of addresses to listen on.
type bindKind struct {
	list
	field func(*Config) *[]string
}

func bind(field func(*Config) *[]string) kind { return bindKind{field: field} }

func (k bindKind) parse(c *Config, args []string, _ bool) error {
	if len(args) > maxBindAddresses {
		return redisText("Too many bind addresses specified.")
	}
	if slices.Contains(args, "") || slices.Contains(args, "-") {
		return errors.New("argument must be addresses with single spaces between them")
	}
	if err := checkBindAddresses(args); err != nil {
		return err
	}
	*k.field(c) = slices.Clone(args)
	return nil
}

func (k bindKind) format(c *Config) string { return strings.Join(*k.field(c), " ") }

func (k bindKind) lines(c *Config) []string {
	addresses := *k.field(c)
	if len(addresses) == 0 {
		return []string{`""`}
	}
	words := make([]string, len(addresses))
	for i, address := range addresses {
		words[i] = quoteIfNeeded(address)
	}
	return []string{strings.Join(words, " ")}
}

func (bindKind) syntax() string { return fmt.Sprintf("up to %d addresses", maxBindAddresses) }

// maxSavePoints bounds how often save may be repeated.
const maxSavePoints = 64

// saveKind is save: pairs of seconds and changes. The first save of a source replaces what was there, a later one adds to it, and
// an empty one clears it.
type saveKind struct{ list }

func (saveKind) parse(c *Config, args []string, more bool) error {
	var points []SavePoint
	if more && len(args) > 0 {
		points = slices.Clone(c.Save)
	}
	if len(args)%2 != 0 || len(points)+len(args)/2 > maxSavePoints {
		return errSave
	}
	for pair := range slices.Chunk(args, 2) {
		if pair[1] == "" {
			pair[1] = "0" // as for Redis
		}
		period, err1 := strconv.Atoi(pair[0])
		changes, err2 := strconv.ParseInt(pair[1], 10, 32)
		if err1 != nil || err2 != nil || period < 1 || changes < 0 {
			return errSave
		}
		points = append(points, SavePoint{Seconds: period, Changes: int(changes)})
	}
	c.Save = points
	return nil
}

const errSave = redisText("Invalid save parameters")

func (saveKind) format(c *Config) string {
	var words []string
	for _, p := range c.Save {
		words = append(words, fmt.Sprintf("%d %d", p.Seconds, p.Changes))
	}
	return strings.Join(words, " ")
}

func (k saveKind) lines(c *Config) []string {
	if len(c.Save) == 0 {
		return []string{`""`}
	}
	return []string{k.format(c)}
}

func (saveKind) syntax() string { return `"", or pairs of seconds and changes` }

// maxPercentiles bounds latency-tracking-info-percentiles.
const maxPercentiles = 64

// percentilesKind is latency-tracking-info-percentiles: numbers from 0 to 100.
type percentilesKind struct{ list }

func (percentilesKind) parse(c *Config, args []string, _ bool) error {
	const name = "latency-tracking-info-percentiles"
	if len(args) > maxPercentiles {
		return fmt.Errorf("at most %d percentiles", maxPercentiles)
	}
	list := make([]float64, len(args))
	for i, arg := range args {
		p, ok := number.ParseFloat([]byte(arg))
		switch {
		case !ok:
			return redisText("Invalid " + name + " parameters")
		case p < 0 || p > 100:
			return redisText(name + " parameters should sit between [0.0,100.0]")
		}
		list[i] = p
	}
	c.LatencyPercentiles = list
	return nil
}

func (percentilesKind) format(c *Config) string {
	words := make([]string, len(c.LatencyPercentiles))
	for i, p := range c.LatencyPercentiles {
		words[i] = strconv.FormatFloat(p, 'g', 10, 64)
	}
	return strings.Join(words, " ")
}

func (k percentilesKind) lines(c *Config) []string {
	if len(c.LatencyPercentiles) == 0 {
		return []string{`""`}
	}
	return []string{k.format(c)}
}

func (percentilesKind) syntax() string { return "numbers from 0 to 100" }

// outputLimitsKind is client-output-buffer-limit: a class, two sizes and seconds, as often as wanted. Classes that are not named
// keep their limits.
type outputLimitsKind struct{ list }

// outputClass is one class of clients under the names that the directive takes for it.
type outputClass struct {
	names []string // the first is the one that the file is rewritten with
	shown string   // by CONFIG GET
	limit *OutputLimit
}

func outputClasses(c *Config) []outputClass {
	return []outputClass{
		{[]string{"normal"}, "normal", &c.OutputLimits.Normal},
		{[]string{"replica", "slave"}, "slave", &c.OutputLimits.Replica},
		{[]string{"pubsub"}, "pubsub", &c.OutputLimits.PubSub},
	}
}

func (outputLimitsKind) parse(c *Config, args []string, _ bool) error {
	if len(args)%4 != 0 {
		return redisText("Wrong number of arguments in buffer limit configuration.")
	}
	classes := outputClasses(c)
	for words := range slices.Chunk(args, 4) {
		name := strings.ToLower(words[0])
		i := slices.IndexFunc(classes, func(class outputClass) bool { return slices.Contains(class.names, name) })
		if i < 0 {
			return redisText("Invalid client class specified in buffer limit configuration.")
		}
		limit, ok := parseOutputLimit(words[1], words[2], words[3])
		if !ok {
			return redisText("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		*classes[i].limit = limit
	}
	return nil
}

// parseOutputLimit reads one class's limits. Sizes beyond what memory can be are as good as none and are cut to the largest int;
// an empty word is 0, as for Redis.
func parseOutputLimit(hard, soft, softTime string) (OutputLimit, bool) {
	h, ok1 := parseMemory(hard)
	s, ok2 := parseMemory(soft)
	var period int64
	var err error
	if softTime != "" {
		period, err = strconv.ParseInt(softTime, 10, 64)
	}
	if !ok1 || !ok2 || err != nil || period < 0 || period > maxSeconds {
		return OutputLimit{}, false
	}
	return OutputLimit{
		Hard: int(min(h, math.MaxInt)), Soft: int(min(s, math.MaxInt)),
		SoftTime: time.Duration(period) * time.Second,
	}, true
}

func (outputLimitsKind) format(c *Config) string {
	var words []string
	for _, class := range outputClasses(c) {
		l := class.limit
		words = append(words, fmt.Sprintf("%s %d %d %d", class.shown, l.Hard, l.Soft, l.SoftTime/time.Second))
	}
	return strings.Join(words, " ")
}

func (outputLimitsKind) lines(c *Config) []string {
	var lines []string
	for _, class := range outputClasses(c) {
		l := class.limit
		lines = append(lines, fmt.Sprintf("%s %s %s %d", class.names[0], formatMemory(l.Hard), formatMemory(l.Soft), l.SoftTime/time.Second))
	}
	return lines
}

func (outputLimitsKind) syntax() string {
	return "class, hard size, soft size, soft seconds; repeatable"
}
