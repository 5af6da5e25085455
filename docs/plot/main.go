// Command plot draws docs/algorithms.md's plots: the same traffic through each algorithm of package throttle, as an SVG file each in
// the directory that its only argument names.
package main

//go:generate go run . .

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plot directory")
		os.Exit(2)
	}
	for _, s := range subjects {
		path := filepath.Join(os.Args[1], s.name+".svg")
		if err := os.WriteFile(path, []byte(s.draw()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "plot:", err)
			os.Exit(1)
		}
	}
}
