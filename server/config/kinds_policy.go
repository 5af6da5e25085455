package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate/internal/quoting"
	"headgate/server/limiter"
)

// maxPolicies bounds how often policy may be repeated.
const maxPolicies = 10_000

// NamedPolicy is a limit of the configuration.
type NamedPolicy struct {
	Name   string
	Text   string // in its canonical form
	Policy limiter.Policy
}

// policiesKind is policy: a name, an algorithm and its words, as often as wanted. The first policy of a source replaces what was there,
// a later one adds to it, and an empty one clears it. In one text, commas stand between several.
type policiesKind struct{ list }

func (policiesKind) parse(c *Config, args []string, more bool) error {
	var all []NamedPolicy
	if more && len(args) > 0 {
		all = slices.Clone(c.Policies)
	}
	if len(args) > 1 && args[0] == "" && limiter.Standard.Find(args[1]) != nil { // else that would be taken for the name
		return errors.New(policyError(limiter.ErrName))
	}
	for _, text := range strings.Split(strings.Join(args, " "), ",") {
		words, err := policyWords(text)
		if err != nil {
			return err
		}
		if len(words) == 0 && len(args) == 0 {
			break
		}
		if len(words) < 2 {
			return fmt.Errorf("argument must be a name, an algorithm and what follows it")
		}
		one, err := parsePolicy(words)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(p NamedPolicy) bool { return p.Name == one.Name })
		if all = append(all, one); len(all) > maxPolicies {
			return fmt.Errorf("there must be at most %d policies", maxPolicies)
		}
	}
	c.Policies = all
	return nil
}

// policyWords splits a policy of the configuration into words. The limit may be in quotes, as in RL.TAKE.
func policyWords(text string) ([][]byte, error) {
	words, err := quoting.Split(text)
	if err != nil || len(words) == 0 {
		return nil, err
	}
	return append([][]byte{[]byte(words[0])}, limiter.Words(strings.Join(words[1:], " "))...), nil
}

// policyError is an error for a policy as the configuration says it.
func policyError(err error) string {
	return strings.Replace(strings.TrimPrefix(err.Error(), "ERR "), limiter.PolicyCall, "policy name ", 1)
}

func parsePolicy(words [][]byte) (p NamedPolicy, err error) {
	if err = limiter.CheckName(words[0]); err == nil {
		p.Name = string(words[0])
		p.Policy, p.Text, err = limiter.Standard.ParseText(words[1:])
	}
	if err != nil {
		err = errors.New(policyError(err))
	}
	return p, err
}

func (k policiesKind) format(c *Config) string {
	if len(c.Policies) == 0 {
		return ""
	}
	return strings.Join(k.lines(c), ", ")
}

func (policiesKind) lines(c *Config) []string {
	if len(c.Policies) == 0 {
		return []string{`""`}
	}
	lines := make([]string, len(c.Policies))
	for i, p := range c.Policies {
		lines[i] = p.Name + " " + p.Text
	}
	return lines
}

func (policiesKind) syntax() string { return `"", or name, algorithm and its arguments; repeatable` }
