package httpcheck

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"headgate/server/limiter"
	"headgate/server/local"
)

// check is what a request asks.
type check struct {
	pairs []local.Pair
	peek  bool
	json  bool // the answer is to be JSON
}

// query is what a request's query has, in the order in which it stands there.
type query struct {
	policies, keys, costs, peeks, formats []string
	unknown                               string // the first name of another parameter
	strange                               bool   // there is one
}

// maxParameters is how many parameters a query may have, as net/url has it.
const maxParameters = 10_000

// readQuery reads a query as url.ParseQuery does, with its errors, but makes no map of it.
func readQuery(text string) (q query, err error) {
	if strings.Count(text, "&") >= maxParameters {
		return q, errors.New("number of URL query parameters exceeded limit")
	}
	for text != "" {
		var part string
		part, text, _ = strings.Cut(text, "&")
		if strings.Contains(part, ";") {
			return q, errors.New("invalid semicolon separator in query") // whatever else is wrong
		}
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, wrong := url.QueryUnescape(name)
		if wrong == nil {
			value, wrong = url.QueryUnescape(value)
		}
		switch {
		case wrong == nil:
			q.add(name, value)
		case err == nil:
			err = wrong
		}
	}
	return q, err
}

func (q *query) add(name, value string) {
	switch name {
	case "policy":
		q.policies = append(q.policies, value)
	case "key":
		q.keys = append(q.keys, value)
	case "cost":
		q.costs = append(q.costs, value)
	case "peek":
		q.peeks = append(q.peeks, value)
	case "format":
		q.formats = append(q.formats, value)
	default:
		if !q.strange {
			q.unknown, q.strange = name, true
		}
	}
}

// once returns the value of a parameter that may be given once, or "".
func once(name string, given []string) (string, error) {
	switch len(given) {
	case 0:
		return "", nil
	case 1:
		return given[0], nil
	}
	return "", badRequest("%s is given %d times", name, len(given))
}

// readCheck reads a request. The error is a problem of the caller's.
func readCheck(r *http.Request) (check, error) {
	var c check
	q, err := readQuery(r.URL.RawQuery)
	switch {
	case err != nil:
		return c, badRequest("the query cannot be read: %v", err)
	case q.strange:
		return c, badRequest("unknown parameter %q, use policy, key, cost, peek or format", q.unknown)
	}
	peek, err := once("peek", q.peeks)
	if err != nil {
		return c, err
	}
	format, err := once("format", q.formats)
	if err != nil {
		return c, err
	}
	if err := c.readPairs(q.policies, q.keys, q.costs, r); err != nil {
		return c, err
	}
	switch peek {
	case "":
	case "0", "1":
		c.peek = peek == "1"
	default:
		return c, badRequest("peek must be 0 or 1")
	}
	switch format {
	case "":
		c.json = strings.Contains(r.Header.Get("Accept"), "application/json")
	case "json":
		c.json = true
	case "text":
	default:
		return c, badRequest("format must be text or json")
	}
	return c, nil
}

// readPairs reads the limits: as many policies as keys, and a cost for each, for all, or for none.
func (c *check) readPairs(policies, keys, costs []string, r *http.Request) error {
	switch {
	case len(policies) == 0 || len(policies) != len(keys):
		return badRequest("there must be a key for each policy, and at least one of both")
	case len(policies) > local.MaxPairs:
		return badRequest("a check can have at most %d policies", local.MaxPairs)
	case len(costs) > 1 && len(costs) != len(policies):
		return badRequest("there must be one cost, or one for each policy")
	}
	c.pairs = make([]local.Pair, len(policies))
	for i := range c.pairs {
		key, err := expand(keys[i], r)
		if err != nil {
			return err
		}
		if key == "" {
			return badRequest("the key for policy %q is empty", limiter.Shown(policies[i])) // strangers would share a limit
		}
		c.pairs[i] = local.Pair{Policy: policies[i], Key: key, Cost: 1}
		if len(costs) > 0 {
			if c.pairs[i].Cost, err = readCost(costs[min(i, len(costs)-1)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readCost reads a cost. RL.TAKE would take one below 0 as well, and give back that much: over HTTP a gateway asks, and a client that gets something
// of its own into the query must not refill its limit.
func readCost(text string) (int64, error) {
	cost, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, badRequest("cost %q is not an integer", limiter.Shown(text))
	case cost < 0:
		return 0, badRequest("cost %d is below 0; give back with RL.TAKE", cost)
	}
	return cost, nil
}

// badRequest is a problem with the status 400.
func badRequest(format string, args ...any) error {
	return &problem{Status: http.StatusBadRequest, Title: "Bad request", Detail: fmt.Sprintf(format, args...)}
}
