package rls

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"

	"headgate/server/config"
	"headgate/server/limiter"
)

// Limits of configuration files.
const (
	maxFiles    = 1000
	maxFileSize = 8 << 20 // bytes
	maxRules    = 100_000 // in all files
	maxDepth    = 16      // of descriptors within each other, which is also how many entries a descriptor may have
)

// Rules are the domains of configuration files. They never change.
type Rules struct {
	domains  map[string]*level
	count    int               // of rules that limit, or say that there is no limit
	policies map[string]string // the names of policies that rules have, and where the first of these is: file:line
}

func newRules() *Rules {
	return &Rules{domains: map[string]*level{}, policies: map[string]string{}}
}

// level is where the descriptors of one depth are found.
type level struct {
	next      map[string]*node // by key_value, or by key alone
	wildcards []string         // of these, those that end with *, in the order of the file
	file      string           // of a domain: where it is from
}

// node is a descriptor of the file.
type node struct {
	level
	rule  *rule // nil: it only leads on
	share bool  // all values that match its wildcard have one limit
}

// rule is a limit.
type rule struct {
	asked     string // as RL.TAKE takes it: a policy's name, or policy with the name under which its calls are counted
	policy    string // a name, or a policy written out
	kind      string // what its keys end with, so that limits of different kinds have keys of their own
	limit     *rls.RateLimitResponse_RateLimit
	name      string
	replaces  []string
	unlimited bool
}

// units are how long the units of limits are, in seconds: a month has 30 days and a year 365, as with envoyproxy/ratelimit.
var units = map[rls.RateLimitResponse_RateLimit_Unit]int64{
	rls.RateLimitResponse_RateLimit_SECOND: 1,
	rls.RateLimitResponse_RateLimit_MINUTE: 60,
	rls.RateLimitResponse_RateLimit_HOUR:   3600,
	rls.RateLimitResponse_RateLimit_DAY:    24 * 3600,
	rls.RateLimitResponse_RateLimit_WEEK:   7 * 24 * 3600,
	rls.RateLimitResponse_RateLimit_MONTH:  30 * 24 * 3600,
	rls.RateLimitResponse_RateLimit_YEAR:   365 * 24 * 3600,
}

// algorithms are how limits may be counted. The first is what a file without a word about it means.
var algorithms = []struct{ word, text string }{
	{"fixed", "FIXED %[1]d %[2]ds ALIGNED"},
	{"gcra", "GCRA %[1]d %[1]d %[2]ds"},
	{"sliding", "SLIDING %[1]d %[2]ds"},
	{"log", "LOG %[1]d %[2]ds"},
}

// shadowWord ends a policy that limits nobody.
const shadowWord = " SHADOW"

// written is a limit as a policy.
func written(algorithm string, n uint32, unit rls.RateLimitResponse_RateLimit_Unit, shadow bool) (policy, kind string) {
	for _, a := range algorithms {
		if a.word == algorithm {
			policy, kind = fmt.Sprintf(a.text, n, units[unit]), a.word+" "+strings.ToLower(unit.String())
		}
	}
	if n == 0 { // a rate of nothing is no rate
		policy = fmt.Sprintf(algorithms[0].text, n, units[unit])
	}
	if shadow {
		policy += shadowWord
	}
	return policy, kind
}

// countedAs is a limit that is written out as RL.TAKE takes it, with the name under which its calls are counted: letters that names may not have become _.
func countedAs(policy, name string) string {
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && limiter.CheckName([]byte{byte(r)}) == nil {
			return r
		}
		return '_'
	}, name)
	return policy + " NAME " + name[:min(len(name), limiter.MaxName)]
}

// Read reads a configuration file, or all of a directory that end with .yaml or .yml. An error names the file, the line, and what is wrong there;
// of several files it has the first mistake of each.
func Read(path string) (*Rules, error) {
	files, err := filesOf(path)
	if err != nil {
		return nil, err
	}
	r := newRules()
	var failed []error
	for _, name := range files {
		if err := r.readFile(name); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return r, nil
}

// filesOf lists the files that a path stands for, in the order of their names.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%s has no file that ends with .yaml or .yml", path)
	case len(files) > maxFiles:
		return nil, fmt.Errorf("%s has %d files, and at most %d are read", path, len(files), maxFiles)
	}
	return files, nil
}

// mistake is what is wrong at a place of a file.
type mistake struct {
	file string
	line int
	text string
}

// Error implements error.
func (m *mistake) Error() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.text) }

// reader reads one file.
type reader struct {
	file  string
	rules *Rules
}

func (r *reader) wrong(at *yaml.Node, format string, args ...any) error {
	return &mistake{r.file, at.Line, fmt.Sprintf(format, args...)}
}

func (r *Rules) readFile(name string) error {
	text, err := config.ReadRegular(name, maxFileSize)
	if err != nil {
		return err
	}
	return r.readText(name, text)
}

func (r *Rules) readText(name string, text []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) == 0 {
		return &mistake{name, 1, "the file is empty"}
	}
	return (&reader{name, r}).readRoot(document.Content[0])
}

// fields splits a mapping into its fields, which must be among those known.
func (r *reader) fields(n *yaml.Node, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		return nil, r.wrong(n, "aliases are not read")
	}
	if n.Kind != yaml.MappingNode {
		return nil, r.wrong(n, "there must be a mapping here")
	}
	found := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			return nil, r.wrong(key, "a key must be a string")
		}
		if !slices.Contains(known, key.Value) {
			return nil, r.wrong(key, "unknown key '%s', use %s", limiter.Shown(key.Value), strings.Join(known, ", "))
		}
		if found[key.Value] != nil {
			return nil, r.wrong(key, "key '%s' is set twice", key.Value)
		}
		if value.Tag != "!!null" {
			found[key.Value] = value
		}
	}
	return found, nil
}

// text is a field's text, or "" if it is absent.
func (r *reader) text(n *yaml.Node) (string, error) {
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode {
		return "", r.wrong(n, "there must be a text here")
	}
	return n.Value, nil
}

// flag is a field that is true or false, or false if it is absent.
func (r *reader) flag(n *yaml.Node) (is bool, err error) {
	if n == nil {
		return false, nil
	}
	if n.Tag != "!!bool" || n.Decode(&is) != nil {
		return false, r.wrong(n, "'%s' must be true or false", limiter.Shown(n.Value))
	}
	return is, nil
}

// list is a field that is a list.
func (r *reader) list(n *yaml.Node) ([]*yaml.Node, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, r.wrong(n, "there must be a list here")
	}
	return n.Content, nil
}

func (r *reader) readRoot(n *yaml.Node) error {
	found, err := r.fields(n, "domain", "descriptors")
	if err != nil {
		return err
	}
	domain, err := r.text(found["domain"])
	switch {
	case err != nil:
		return err
	case domain == "":
		return r.wrong(n, "the file must name its domain")
	case r.rules.domains[domain] != nil:
		return r.wrong(found["domain"], "domain '%s' is already defined in %s", limiter.Shown(domain), r.rules.domains[domain].file)
	}
	descriptors, err := r.list(found["descriptors"])
	if err != nil {
		return err
	}
	top := &level{file: r.file}
	if err := r.readLevel(top, descriptors, 1, domain); err != nil {
		return err
	}
	r.rules.domains[domain] = top
	return nil
}

// readLevel reads descriptors of one depth. above is the path of the descriptor that has them, which begins with the domain.
func (r *reader) readLevel(into *level, list []*yaml.Node, depth int, above string) error {
	into.next = make(map[string]*node, len(list))
	for _, n := range list {
		if depth > maxDepth {
			return r.wrong(n, "descriptors can be nested at most %d deep", maxDepth)
		}
		if err := r.readDescriptor(into, n, depth, above); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readDescriptor(into *level, n *yaml.Node, depth int, above string) error {
	found, err := r.fields(n, "key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold")
	if err != nil {
		return err
	}
	key, err := r.text(found["key"])
	if err == nil && key == "" {
		err = r.wrong(n, "a descriptor must have a key")
	}
	if err != nil {
		return err
	}
	value, err := r.text(found["value"])
	if err != nil {
		return err
	}
	path := key
	if value != "" {
		path += "_" + value
	}
	if into.next[path] != nil {
		return r.wrong(n, "descriptor '%s' is defined twice", limiter.Shown(path))
	}
	made := &node{}
	if made.share, err = r.flag(found["share_threshold"]); err != nil {
		return err
	}
	wild := strings.HasSuffix(path, "*")
	if made.share && !wild {
		return r.wrong(found["share_threshold"], "share_threshold needs a value that ends with *")
	}
	shadow := false
	for _, word := range []string{"shadow_mode", "quota_mode"} {
		set, err := r.flag(found[word])
		if err != nil {
			return err
		}
		shadow = shadow || set
	}
	for _, word := range []string{"detailed_metric", "value_to_metric"} { // metrics here are by policy: these are read, and change nothing
		if _, err := r.flag(found[word]); err != nil {
			return err
		}
	}
	if limit := found["rate_limit"]; limit != nil {
		if made.rule, err = r.readLimit(limit, shadow); err != nil {
			return err
		}
		if !made.rule.unlimited && made.rule.asked == "" {
			made.rule.asked = countedAs(made.rule.policy, cmp.Or(made.rule.name, above+"."+path))
		}
		if r.rules.count++; r.rules.count > maxRules {
			return r.wrong(limit, "there are more than %d limits", maxRules)
		}
	}
	below, err := r.list(found["descriptors"])
	if err != nil {
		return err
	}
	if err := r.readLevel(&made.level, below, depth+1, above+"."+path); err != nil {
		return err
	}
	if wild {
		into.wildcards = append(into.wildcards, path)
	}
	into.next[path] = made
	return nil
}

func (r *reader) readLimit(n *yaml.Node, shadow bool) (*rule, error) {
	found, err := r.fields(n, "unit", "requests_per_unit", "unlimited", "name", "replaces", "algorithm", "policy")
	if err != nil {
		return nil, err
	}
	made := &rule{}
	if made.name, err = r.text(found["name"]); err != nil {
		return nil, err
	}
	if made.replaces, err = r.readReplaces(found["replaces"], made.name); err != nil {
		return nil, err
	}
	if made.unlimited, err = r.flag(found["unlimited"]); err != nil {
		return nil, err
	}
	switch {
	case made.unlimited:
		for _, word := range []string{"unit", "algorithm", "policy"} {
			if found[word] != nil {
				return nil, r.wrong(found[word], "%s cannot be combined with unlimited", word)
			}
		}
		return made, nil
	case found["policy"] != nil && shadow:
		return nil, r.wrong(found["policy"], "policy cannot be combined with shadow_mode or quota_mode: add SHADOW to the policy")
	case found["policy"] != nil:
		return made, r.readPolicy(made, found)
	}
	return made, r.readRate(made, n, found, shadow)
}

// readPolicy reads a limit that is a policy's.
func (r *reader) readPolicy(made *rule, found map[string]*yaml.Node) (err error) {
	for _, word := range []string{"unit", "requests_per_unit", "algorithm"} {
		if found[word] != nil {
			return r.wrong(found[word], "%s cannot be combined with policy", word)
		}
	}
	if made.policy, err = r.text(found["policy"]); err != nil {
		return err
	}
	if limiter.CheckName([]byte(made.policy)) != nil {
		return r.wrong(found["policy"], "'%s' is not the name of a policy", limiter.Shown(made.policy))
	}
	if r.rules.policies[made.policy] == "" {
		r.rules.policies[made.policy] = fmt.Sprintf("%s:%d", r.file, found["policy"].Line)
	}
	made.asked, made.kind, made.limit = made.policy, "policy "+made.policy, &rls.RateLimitResponse_RateLimit{Name: made.name}
	return nil
}

// readRate reads a limit that the file says itself.
func (r *reader) readRate(made *rule, n *yaml.Node, found map[string]*yaml.Node, shadow bool) error {
	word, err := r.text(found["unit"])
	if err != nil {
		return err
	}
	unit := rls.RateLimitResponse_RateLimit_Unit(rls.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(word)])
	if word == "" {
		return r.wrong(n, "unit is missing: it must be second, minute, hour, day, week, month or year")
	}
	if units[unit] == 0 {
		return r.wrong(n, "unit '%s' must be second, minute, hour, day, week, month or year", limiter.Shown(word))
	}
	requests, err := r.text(found["requests_per_unit"])
	if err != nil {
		return err
	}
	count := uint64(0)
	if requests != "" {
		if count, err = strconv.ParseUint(requests, 10, 32); err != nil {
			return r.wrong(found["requests_per_unit"], "requests_per_unit '%s' must be from 0 to 4294967295", limiter.Shown(requests))
		}
	}
	algorithm, err := r.text(found["algorithm"])
	if err != nil {
		return err
	}
	if algorithm == "" {
		algorithm = algorithms[0].word
	}
	if made.policy, made.kind = written(algorithm, uint32(count), unit, shadow); made.policy == "" || made.kind == "" {
		return r.wrong(found["algorithm"], "algorithm '%s' must be fixed, gcra, sliding or log", limiter.Shown(algorithm))
	}
	made.limit = &rls.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(count), Unit: unit, Name: made.name}
	return nil
}

func (r *reader) readReplaces(n *yaml.Node, own string) (names []string, err error) {
	list, err := r.list(n)
	if err != nil {
		return nil, err
	}
	for _, each := range list {
		found, err := r.fields(each, "name")
		if err != nil {
			return nil, err
		}
		name, err := r.text(found["name"])
		switch {
		case err != nil:
			return nil, err
		case name == "":
			return nil, r.wrong(each, "what is replaced must have a name")
		case name == own:
			return nil, r.wrong(each, "a limit cannot replace itself")
		}
		names = append(names, name)
	}
	return names, nil
}
