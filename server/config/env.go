package config

import (
	"fmt"
	"slices"
	"strings"
)

// envPrefix starts the names of variables that set directives.
const envPrefix = "HEADGATE_"

// variableOf returns the variable that sets a directive.
func variableOf(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// parseEnvironment turns HEADGATE_ variables into statements, sorted by name. A variable's value is given to its directive as
// CONFIG SET gives it: whole, and split at single spaces where the directive takes several values.
func parseEnvironment(env []string) ([]statement, []Notice, error) {
	var list []statement
	var notices []Notice
	for _, entry := range slices.Sorted(slices.Values(env)) {
		variable, value, ok := strings.Cut(entry, "=")
		if !ok || !strings.HasPrefix(variable, envPrefix) {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(variable[len(envPrefix):], "_", "-"))
		if isServiceLink(variable, value) {
			if byName[name] != nil {
				notices = append(notices, Notice{Where: variable, Text: "ignored: it describes a Kubernetes service, and sets no directive"})
			}
			continue
		}
		if _, found := findIgnored(name); !found && byName[name] == nil {
			return nil, nil, unknownVariable(variable, name)
		}
		list = append(list, statement{where: variable, words: []string{name, value}})
	}
	return list, notices, nil
}

func unknownVariable(variable, name string) error {
	advice := "headgate --help lists the directives"
	if near := nearest(name); near != "" {
		advice = fmt.Sprintf("did you mean %s?", variableOf(near))
	}
	return fmt.Errorf("%s: no directive has that name; %s", variable, advice)
}

// isServiceLink tells whether a variable is one of those that Kubernetes gives to every container for a service named headgate, or
// headgate-something: HEADGATE_SERVICE_HOST, HEADGATE_SERVICE_PORT, HEADGATE_PORT_6379_TCP_ADDR, and HEADGATE_PORT with a URL in it.
func isServiceLink(variable, value string) bool {
	if scheme, _, found := strings.Cut(value, "://"); found && slices.Contains([]string{"tcp", "udp", "sctp"}, scheme) {
		return strings.Contains(variable, "_PORT")
	}
	if strings.HasSuffix(variable, "_SERVICE_HOST") || strings.Contains(variable, "_SERVICE_PORT") {
		return true
	}
	_, rest, found := strings.Cut(variable, "_PORT_")
	return found && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}
