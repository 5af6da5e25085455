package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PendingLimit bounds what may be under way to the upstream at a time.
type PendingLimit struct {
	Bytes    int // of commands
	Commands int
}

// UpstreamTake says what becomes of RL.TAKE whose keys lie on several nodes of the upstream.
type UpstreamTake uint8

// The values of upstream-take.
const (
	TakeAtomic     UpstreamTake = iota // it is refused
	TakeCompensate                     // each limit is charged by itself, and what has passed is given back when one limits
)

// Translation is one name that stands for another.
type Translation struct {
	From, To string
}

// millisecondsKind is a time-out in whole milliseconds.
type millisecondsKind struct {
	single
	low, high int64
	field     func(*Config) *time.Duration
}

func milliseconds(low, high int64, field func(*Config) *time.Duration) kind {
	return millisecondsKind{low: low, high: high, field: field}
}

func (k millisecondsKind) parse(c *Config, args []string, _ bool) error {
	n, err := parseInteger(args[0], k.low, k.high)
	if err == nil {
		*k.field(c) = time.Duration(n) * time.Millisecond
	}
	return err
}

func (k millisecondsKind) format(c *Config) string {
	return strconv.FormatInt(k.field(c).Milliseconds(), 10)
}
func (k millisecondsKind) lines(c *Config) []string { return []string{k.format(c)} }
func (k millisecondsKind) syntax() string           { return rangeSyntax(k.low, k.high) + " ms" }

// shareKind is a part of a whole: above 0, and 1 at most.
type shareKind struct {
	single
	field func(*Config) *float64
}

func share(field func(*Config) *float64) kind { return shareKind{field: field} }

func (k shareKind) parse(c *Config, args []string, _ bool) error {
	f, err := strconv.ParseFloat(args[0], 64)
	if err != nil || math.IsNaN(f) || f < minShare || f > 1 {
		return fmt.Errorf("argument must be a number from %v to 1", minShare)
	}
	*k.field(c) = f
	return nil
}

// minShare is the least share: what is less rounds to nothing.
const minShare = 0.001

func (k shareKind) format(c *Config) string {
	return strconv.FormatFloat(*k.field(c), 'g', -1, 64)
}
func (k shareKind) lines(c *Config) []string { return []string{k.format(c)} }
func (k shareKind) syntax() string           { return fmt.Sprintf("%v to 1", minShare) }

// pendingKind is upstream-pending-max: bytes and commands.
type pendingKind struct{ list }

const (
	minPendingBytes    = 64 << 10 // one command of usual size has to fit
	minPendingCommands = 16
)

func (pendingKind) parse(c *Config, args []string, _ bool) error {
	if len(args) != 2 {
		return errors.New("argument must be a number of bytes and a number of commands")
	}
	bytes, ok := parseMemory(args[0])
	if !ok {
		return errors.New("argument must be a memory value and a number of commands")
	}
	if bytes < minPendingBytes || bytes > math.MaxInt {
		return rangeError(minPendingBytes, math.MaxInt)
	}
	commands, err := parseInteger(args[1], minPendingCommands, math.MaxInt32)
	if err != nil {
		return err
	}
	c.UpstreamPendingMax = PendingLimit{Bytes: int(bytes), Commands: int(commands)}
	return nil
}

func (pendingKind) format(c *Config) string {
	return fmt.Sprintf("%d %d", c.UpstreamPendingMax.Bytes, c.UpstreamPendingMax.Commands)
}

func (pendingKind) lines(c *Config) []string {
	return []string{fmt.Sprintf("%s %d", formatMemory(c.UpstreamPendingMax.Bytes), c.UpstreamPendingMax.Commands)}
}

func (pendingKind) syntax() string { return "bytes, and a number of commands" }

// maxTranslations bounds how often a directive of translations may be repeated.
const maxTranslations = 1_024

// translationsKind is a list of pairs of names. The first pair of a source replaces what was there, later ones add to it, and an empty one
// clears it.
type translationsKind struct {
	list
	field func(*Config) *[]Translation
	what  string // the two names are
}

func translations(what string, field func(*Config) *[]Translation) kind {
	return translationsKind{field: field, what: what}
}

func (k translationsKind) parse(c *Config, args []string, more bool) error {
	var all []Translation
	if more && len(args) > 0 {
		all = slices.Clone(*k.field(c))
	}
	if len(args)%2 != 0 || slices.Contains(args, "") {
		return fmt.Errorf("argument must be %s", k.what)
	}
	for pair := range slices.Chunk(args, 2) {
		all = slices.DeleteFunc(all, func(t Translation) bool { return t.From == pair[0] })
		if all = append(all, Translation{From: pair[0], To: pair[1]}); len(all) > maxTranslations {
			return fmt.Errorf("there must be at most %d of them", maxTranslations)
		}
	}
	*k.field(c) = all
	return nil
}

func (k translationsKind) format(c *Config) string {
	if len(*k.field(c)) == 0 {
		return ""
	}
	return strings.Join(k.lines(c), " ")
}

func (k translationsKind) lines(c *Config) []string {
	all := *k.field(c)
	if len(all) == 0 {
		return []string{`""`}
	}
	lines := make([]string, len(all))
	for i, t := range all {
		lines[i] = quoteIfNeeded(t.From) + " " + quoteIfNeeded(t.To)
	}
	return lines
}

func (k translationsKind) syntax() string { return `"", or ` + k.what + "; repeatable" }
