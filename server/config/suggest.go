package config

import "headgate/internal/spelling"

// nearest returns the known directive that a mistyped one most likely means, or "" if none is close.
func nearest(name string) string {
	known := []string{includeName, "loadmodule"}
	for _, d := range directives {
		known = append(known, d.names()...)
	}
	for _, entry := range ignored {
		known = append(known, entry.Name)
	}
	return spelling.Nearest(name, known...)
}
