package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// sampleWidth is the number of columns that the sample file fills.
const sampleWidth = 80

const sampleHead = `# A sample of headgate's configuration: every directive, with its default or,
# where that is empty, with an example.
# Generated from server/config/directives.go by "go generate ./server/config".
#
# Start with this file:         headgate headgate.conf
# Check it without serving:     headgate headgate.conf --check-config
#
# The syntax is that of redis.conf. Sizes have units in any case: k, m and g
# count in thousands, kb, mb and gb in powers of 1024. HEADGATE_* variables win
# over this file, and flags over both. docs/config.md is the reference.
#
# Read other files at this place:
#
# include /etc/headgate/conf.d/*.conf
`

// SampleFile writes headgate.conf as redis.conf is written: what each directive does, and then, commented out, the line that sets it.
func SampleFile(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, sampleHead)
	defaults := Default()
	for _, group := range groups {
		title := " " + strings.ToUpper(string(group)) + " "
		left := (sampleWidth - len(title)) / 2
		fmt.Fprintf(b, "\n%s%s%s\n", strings.Repeat("#", left), title, strings.Repeat("#", sampleWidth-left-len(title)))
		for _, d := range directives {
			if d.Group != group {
				continue
			}
			fmt.Fprintln(b)
			for _, line := range wrap(d.Summary, sampleWidth-2) {
				fmt.Fprintf(b, "# %s\n", line)
			}
			for _, line := range wrap("Values: "+d.Syntax()+". "+d.sampleChange(), sampleWidth-2) {
				fmt.Fprintf(b, "# %s\n", line)
			}
			fmt.Fprintln(b, "#")
			for _, line := range d.sampleLines(defaults) {
				fmt.Fprintf(b, "# %s\n", line)
			}
		}
	}
	return b.Flush()
}

// sampleLines are the lines that set a directive to its default, or to its example.
func (d *Directive) sampleLines(defaults *Config) []string {
	if d.Example != "" {
		return []string{d.Name + " " + d.Example}
	}
	if lines := fileLines(d, defaults); len(lines) > 1 {
		return lines
	}
	return []string{d.Name + " " + d.Default} // with the units that people write
}

// sampleChange says when a new value takes effect.
func (d *Directive) sampleChange() string {
	switch {
	case d.Guarded:
		return "CONFIG SET needs enable-protected-configs."
	case d.Settable:
		return "CONFIG SET changes it."
	}
	return "It takes effect at the next start."
}
