package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/number"
	"headgate/internal/quoting"
)

// redisText is an error in Redis's own words and its own spelling, which clients of CONFIG SET may look for.
type redisText string

func (t redisText) Error() string { return string(t) }

// kind reads and prints the values of one sort of directive. Its error texts are Redis's, since CONFIG SET passes them on.
type kind interface {
	// several tells whether the directive takes any number of words, which CONFIG SET gets as one text with single spaces between.
	several() bool
	// parse sets the field in c. more tells that the same source has set it before.
	parse(c *Config, args []string, more bool) error
	// format prints the field as CONFIG GET does.
	format(c *Config) string
	// lines prints what follows the directive's name in the file, for each line that it takes.
	lines(c *Config) []string
	// syntax says in a few words what values there are.
	syntax() string
}

// textTaker is a kind of several words whose parse gets such a text as it is.
type textTaker interface{ takesText() }

// single is what all kinds of one value have in common.
type single struct{}

func (single) several() bool { return false }

type yesNoKind struct {
	single
	field func(*Config) *bool
}

func yesNo(field func(*Config) *bool) kind { return yesNoKind{field: field} }

func (k yesNoKind) parse(c *Config, args []string, _ bool) error {
	switch strings.ToLower(args[0]) {
	case "yes":
		*k.field(c) = true
	case "no":
		*k.field(c) = false
	default:
		return errors.New("argument must be 'yes' or 'no'")
	}
	return nil
}

func (k yesNoKind) format(c *Config) string {
	if *k.field(c) {
		return "yes"
	}
	return "no"
}

func (k yesNoKind) lines(c *Config) []string { return []string{k.format(c)} }
func (k yesNoKind) syntax() string           { return "yes, no" }

// errNotInteger is Redis's answer to a number that is not written in its shortest decimal form.
var errNotInteger = errors.New("argument couldn't be parsed into an integer")

// parseInteger reads a decimal number within bounds: no sign but -, no leading zeros, no spaces.
func parseInteger(s string, low, high int64) (int64, error) {
	n, ok := number.ParseInt([]byte(s))
	if !ok {
		return 0, errNotInteger
	}
	if n < low || n > high {
		return 0, rangeError(low, high)
	}
	return n, nil
}

func rangeError(low, high int64) error {
	return fmt.Errorf("argument must be between %d and %d inclusive", low, high)
}

func rangeSyntax(low, high int64) string {
	if high == math.MaxInt {
		return fmt.Sprintf("%d or more", low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

type integerKind struct {
	single
	low, high int64
	field     func(*Config) *int
}

func integer(low, high int64, field func(*Config) *int) kind {
	return integerKind{low: low, high: min(high, math.MaxInt), field: field}
}

func (k integerKind) parse(c *Config, args []string, _ bool) error {
	n, err := parseInteger(args[0], k.low, k.high)
	if err == nil {
		*k.field(c) = int(n)
	}
	return err
}

func (k integerKind) format(c *Config) string  { return strconv.Itoa(*k.field(c)) }
func (k integerKind) lines(c *Config) []string { return []string{k.format(c)} }
func (k integerKind) syntax() string           { return rangeSyntax(k.low, k.high) }

type secondsKind struct {
	single
	low   int64
	field func(*Config) *time.Duration
}

// seconds is a time-out in whole seconds.
func seconds(field func(*Config) *time.Duration) kind { return secondsKind{field: field} }

// secondsFrom is a time-out in whole seconds, of which there must be some.
func secondsFrom(low int64, field func(*Config) *time.Duration) kind {
	return secondsKind{low: low, field: field}
}

func (k secondsKind) parse(c *Config, args []string, _ bool) error {
	n, err := parseInteger(args[0], k.low, maxSeconds)
	if err == nil {
		*k.field(c) = time.Duration(n) * time.Second
	}
	return err
}

func (k secondsKind) format(c *Config) string {
	return strconv.FormatInt(int64(*k.field(c)/time.Second), 10)
}
func (k secondsKind) lines(c *Config) []string { return []string{k.format(c)} }
func (k secondsKind) syntax() string           { return rangeSyntax(k.low, maxSeconds) + " s" }

type memoryKind struct {
	single
	low    int64
	raised int64 // what is less counts as this
	field  func(*Config) *int
}

// memory is a size in bytes, written with a unit or without.
func memory(low int64, field func(*Config) *int) kind { return memoryKind{low: low, field: field} }

// memoryRaised is memory from 1 on, of which what is below low counts as low.
func memoryRaised(low int64, field func(*Config) *int) kind {
	return memoryKind{low: 1, raised: low, field: field}
}

func (k memoryKind) parse(c *Config, args []string, _ bool) error {
	n, ok := parseMemory(args[0])
	if !ok {
		return errors.New("argument must be a memory value")
	}
	if n < uint64(k.low) || n > math.MaxInt {
		return rangeError(k.low, math.MaxInt)
	}
	*k.field(c) = max(int(n), int(k.raised))
	return nil
}

func (k memoryKind) format(c *Config) string  { return strconv.Itoa(*k.field(c)) }
func (k memoryKind) lines(c *Config) []string { return []string{formatMemory(*k.field(c))} }
func (k memoryKind) syntax() string           { return formatMemory(int(max(k.low, k.raised))) + " or more" }

type memoryOrShareKind struct {
	single
	field func(*Config) *int
}

// memoryOrShare is a size in bytes, or a percentage, which the field holds as a negative number.
func memoryOrShare(field func(*Config) *int) kind { return memoryOrShareKind{field: field} }

func (k memoryOrShareKind) parse(c *Config, args []string, _ bool) error {
	if digits, percent := strings.CutSuffix(args[0], "%"); percent {
		n, err := strconv.ParseUint(digits, 10, 31)
		switch {
		case err != nil:
			return errors.New("argument must be a memory or percent value")
		case n > 100:
			return errors.New("percentage argument must be less or equal to 100")
		}
		*k.field(c) = -int(n)
		return nil
	}
	n, ok := parseMemory(args[0])
	if !ok {
		return errors.New("argument must be a memory or percent value")
	}
	if n > math.MaxInt {
		return rangeError(0, math.MaxInt)
	}
	*k.field(c) = int(n)
	return nil
}

func (k memoryOrShareKind) format(c *Config) string {
	if n := *k.field(c); n < 0 {
		return strconv.Itoa(-n) + "%"
	}
	return strconv.Itoa(*k.field(c))
}

func (k memoryOrShareKind) lines(c *Config) []string {
	if n := *k.field(c); n > 0 {
		return []string{formatMemory(n)}
	}
	return []string{k.format(c)}
}

func (k memoryOrShareKind) syntax() string { return "0 or more, or 1% to 100%" }

// parseMemory is number.ParseMemory, but takes a number of any length for what it is: too large.
func parseMemory(s string) (bytes uint64, ok bool) {
	if bytes, ok = number.ParseMemory(s); ok {
		return bytes, true
	}
	_, ok = number.ParseMemory(strings.TrimLeft(s, "0123456789"))
	return math.MaxUint64, ok
}

// formatMemory prints a size in the largest unit that leaves a whole number.
func formatMemory(bytes int) string {
	for _, unit := range []struct {
		name  string
		bytes int
	}{{"gb", kib * mib}, {"mb", mib}, {"kb", kib}} {
		if bytes != 0 && bytes%unit.bytes == 0 {
			return strconv.Itoa(bytes/unit.bytes) + unit.name
		}
	}
	return strconv.Itoa(bytes)
}

type enumKind[T ~uint8] struct {
	single
	field func(*Config) *T
	names []string // by value
}

// enum is one of a few words, in any case; their positions are the field's values.
func enum[T ~uint8](field func(*Config) *T, names ...string) kind {
	return enumKind[T]{field: field, names: names}
}

func (k enumKind[T]) parse(c *Config, args []string, _ bool) error {
	i := slices.Index(k.names, strings.ToLower(args[0]))
	if i < 0 {
		return errors.New("argument(s) must be one of the following: " + strings.Join(k.names, ", "))
	}
	*k.field(c) = T(i)
	return nil
}

func (k enumKind[T]) format(c *Config) string  { return k.names[*k.field(c)] }
func (k enumKind[T]) lines(c *Config) []string { return []string{k.format(c)} }
func (k enumKind[T]) syntax() string           { return strings.Join(k.names, ", ") }

type textKind struct {
	single
	field func(*Config) *string
}

func text(field func(*Config) *string) kind { return textKind{field: field} }

func (k textKind) parse(c *Config, args []string, _ bool) error {
	*k.field(c) = args[0]
	return nil
}

func (k textKind) format(c *Config) string  { return *k.field(c) }
func (k textKind) lines(c *Config) []string { return []string{quoting.Quote(*k.field(c))} }
func (k textKind) syntax() string           { return "text" }

// permissionKind is the permission bits of a file, in octal.
type permissionKind struct {
	single
	field func(*Config) *os.FileMode
}

func permission(field func(*Config) *os.FileMode) kind { return permissionKind{field: field} }

func (k permissionKind) parse(c *Config, args []string, _ bool) error {
	n, err := strconv.ParseInt(args[0], 8, 64)
	if err != nil {
		return errors.New("argument couldn't be parsed as an octal number")
	}
	if n < 0 || n > int64(os.ModePerm) {
		return fmt.Errorf("argument must be between 0 and %o inclusive", os.ModePerm)
	}
	*k.field(c) = os.FileMode(n)
	return nil
}

func (k permissionKind) format(c *Config) string  { return strconv.FormatUint(uint64(*k.field(c)), 8) }
func (k permissionKind) lines(c *Config) []string { return []string{k.format(c)} }
func (permissionKind) syntax() string             { return "0 to 777, octal" }

// directory is dir. A relative path counts from the directory that holds so far, as if one changed into it.
type directory struct{ single }

func (directory) parse(c *Config, args []string, _ bool) error {
	switch {
	case args[0] == "":
		return redisText("No such file or directory")
	case filepath.IsAbs(args[0]):
		c.Dir = filepath.Clean(args[0])
	default:
		c.Dir = filepath.Join(c.Dir, args[0])
	}
	return nil
}

func (directory) format(c *Config) string  { return c.Dir }
func (directory) lines(c *Config) []string { return []string{quoting.Quote(c.Dir)} }
func (directory) syntax() string           { return "an existing directory" }
