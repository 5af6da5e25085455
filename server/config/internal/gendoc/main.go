// Command gendoc writes the reference of all directives to the file that its only argument names.
package main

import (
	"bytes"
	"fmt"
	"os"

	"headgate/server/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc file")
		os.Exit(2)
	}
	var b bytes.Buffer
	if err := config.Reference(&b); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
	if err := os.WriteFile(os.Args[1], b.Bytes(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}
