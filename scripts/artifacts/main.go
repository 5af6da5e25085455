// Artifacts writes what a release has beside its binaries: a software bill of materials for each, and a container image. It needs neither a
// container engine nor the network, and the same input gives the same bytes.
//
//	artifacts sbom BINARY NAME VERSION CREATED            write an SPDX 2.3 document to standard output
//	artifacts image FILE VERSION REVISION CREATED OS/ARCH=BINARY...   write an OCI image layout, as a tar archive; reads Dockerfile
//
// CREATED is a time in seconds since 1970, that of the commit.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "artifacts:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: artifacts sbom BINARY NAME VERSION CREATED | artifacts image FILE VERSION REVISION CREATED OS/ARCH=BINARY, one or more")

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 5 && args[0] == "sbom":
		created, err := parseTime(args[4])
		if err != nil {
			return err
		}
		return writeSBOM(out, args[1], args[2], args[3], created)
	case len(args) >= 6 && args[0] == "image":
		created, err := parseTime(args[4])
		if err != nil {
			return err
		}
		dockerfile, err := os.ReadFile("Dockerfile")
		if err != nil {
			return err
		}
		var archive bytes.Buffer
		if err := writeImage(&archive, dockerfile, args[2], args[3], created, args[5:]); err != nil {
			return err
		}
		return os.WriteFile(args[1], archive.Bytes(), 0o644)
	}
	return errUsage
}

func parseTime(seconds string) (time.Time, error) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	return time.Unix(n, 0).UTC(), err
}
