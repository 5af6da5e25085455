// Command plot draws the plots of docs/algorithms.md, which show the same traffic through each algorithm of package throttle, and writes each as an
// SVG file into the directory that its only argument names. It also draws the plot of leases in docs/operations.md, and writes their table.
package main

//go:generate go run . .

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plot directory")
		os.Exit(2)
	}
	files := map[string]string{"leases": drawLeases()}
	for _, s := range subjects {
		files[s.name] = s.draw()
	}
	for name, text := range files {
		write(filepath.Join(os.Args[1], name+".svg"), text)
	}
	path := filepath.Join(os.Args[1], tablePage)
	page, err := os.ReadFile(path)
	if err != nil {
		fail(err)
	}
	write(path, withTable(string(page)))
}

func write(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "plot:", err)
	os.Exit(1)
}

// tablePage is the page with the table of leases, which stands between two marks.
const (
	tablePage  = "../operations.md"
	tableBegin = "<!-- leases:begin -->\n"
	tableEnd   = "<!-- leases:end -->\n"
)

// withTable returns the page with the table as it is now.
func withTable(page string) string {
	before, rest, _ := strings.Cut(page, tableBegin)
	_, after, found := strings.Cut(rest, tableEnd)
	if !found {
		return page
	}
	return before + tableBegin + leaseTable() + tableEnd + after
}
