// Command gendoc writes the reference of all directives, and a sample file with all of them, to the files that its arguments name.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"headgate/server/config"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gendoc reference sample")
		os.Exit(2)
	}
	for i, write := range []func(io.Writer) error{config.Reference, config.SampleFile} {
		var b bytes.Buffer
		err := write(&b)
		if err == nil {
			err = os.WriteFile(os.Args[1+i], b.Bytes(), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "gendoc:", err)
			os.Exit(1)
		}
	}
}
