package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Address is where another server listens.
type Address struct {
	Host string
	Port int
}

// maxHost is the length of the longest name of a machine (RFC 1035, section 2.3.4).
const maxHost = 255

// hostBytes are those of names and addresses. Underscores stand in names of containers.
const hostBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:%"

// IsHost reports whether text can be the name or the address of a machine: it is not empty, not too long, and has only letters, digits and what
// stands between them in names and addresses, a zone among it. What else somebody sends would stand in INFO, where a line may mean anything.
func IsHost(text string) bool {
	return text != "" && len(text) <= maxHost && strings.Trim(text, hostBytes) == ""
}

// addressKind is a host and a port, or nothing, which "no one" stands for, too.
type addressKind struct {
	list
	field func(*Config) *Address
}

func (k addressKind) parse(c *Config, args []string, _ bool) error {
	switch {
	case len(args) == 0, len(args) == 2 && strings.EqualFold(args[0], "no") && strings.EqualFold(args[1], "one"):
		*k.field(c) = Address{}
		return nil
	case len(args) != 2 || !IsHost(args[0]):
		return errors.New("argument must be a host and a port")
	}
	port, err := parseInteger(args[1], 1, math.MaxUint16)
	if err == nil {
		*k.field(c) = Address{args[0], int(port)}
	}
	return err
}

func (k addressKind) format(c *Config) string {
	if a := *k.field(c); a != (Address{}) {
		return a.Host + " " + strconv.Itoa(a.Port)
	}
	return ""
}

func (k addressKind) lines(c *Config) []string {
	if a := *k.field(c); a != (Address{}) {
		return []string{quoteIfNeeded(a.Host) + " " + strconv.Itoa(a.Port)}
	}
	return []string{"no one"} // Redis reads this, and "" it does not
}

func (addressKind) syntax() string { return "host and port, or no one" }
