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
	case len(args) != 2 || args[0] == "":
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
	return []string{`""`}
}

func (addressKind) syntax() string { return `host and port, or ""` }
