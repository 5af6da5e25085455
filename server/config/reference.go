package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// usageWidth is the number of columns that --help fills.
const usageWidth = 100

const usageHead = `Usage: headgate [file.conf] [--directive value ...] [-]

Serves the Redis protocol. file.conf has the syntax of redis.conf; a last word - reads more of it from standard
input. Flags are directives: --port 7000 --save "" --client-output-buffer-limit normal 64mb 16mb 30
Variables set them too: HEADGATE_PORT=7000. Flags win over variables, variables over the file.

Directives, with their defaults (* can change at run time: CONFIG SET, or SIGHUP after editing the file):
`

// Usage writes the help text: how to start a server, and all directives.
func Usage(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, usageHead)
	for _, group := range groups {
		fmt.Fprintf(b, "\n%s\n", group)
		for _, d := range directives {
			if d.Group != group {
				continue
			}
			mark := ' '
			if d.Settable {
				mark = '*'
			}
			fmt.Fprintf(b, "%c --%s %s\n", mark, d.Name, d.Default)
			for _, line := range wrap(d.Summary+" ("+d.Syntax()+")", usageWidth-6) {
				fmt.Fprintf(b, "      %s\n", line)
			}
		}
	}
	return b.Flush()
}

// wrap breaks a text into lines of at most width bytes, as far as its words allow.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

const referenceHead = `<!-- Generated from server/config/directives.go by "go generate ./server/config"; do not edit. -->

# Configuration

Every directive can be given in four ways; [headgate.conf](../headgate.conf) is a sample file with all of them. The later one wins:

1. its built-in default;
2. the configuration file: ` + "`headgate headgate.conf`" + `, in the syntax of redis.conf, then standard input if the first or last
   word of the command line is ` + "`-`" + `;
3. the environment: ` + "`HEADGATE_`" + ` and the name in capitals with ` + "`_`" + ` for ` + "`-`" + `, as in ` + "`HEADGATE_TCP_KEEPALIVE=60`" + `;
4. the command line: ` + "`headgate --tcp-keepalive 60 --save \"\" --client-output-buffer-limit normal 64mb 16mb 30`" + `.

While the server runs, ` + "`CONFIG SET`" + ` changes the directives that are marked as settable, all that one command names or none of them.
` + "`CONFIG REWRITE`" + ` brings the file in line with what holds now, and keeps its comments and order. SIGHUP reads the file again: what it
names holds from then on, unless the environment or a flag sets it; what it no longer names returns to its default; the rest stays as
it is. What can only be set at start is left for the next start, and the log says so.

## Syntax of the file

- One directive a line: its name in any case, then its values, separated by blanks. A line that starts with ` + "`#`" + ` is a comment.
- ` + "`\"double quotes\"`" + ` take ` + "`\\n \\r \\t \\a \\b \\\" \\\\`" + ` and ` + "`\\xHH`" + `; in ` + "`'single quotes'`" + ` only ` + "`\\'`" + ` is special.
- Sizes have units: ` + "`k m g`" + ` count in thousands, ` + "`kb mb gb`" + ` in powers of 1024, in any case; none means bytes.
- ` + "`include path`" + ` reads another file at that place, and ` + "`include conf.d/*.conf`" + ` all that match, in order, even none. Paths count from
  the directory in which the server was started. At most %d files may include one another in a row, %d may be read in all, and each
  has at most %d KiB.
- A directive that is there twice holds as it was last set. ` + "`save`" + ` adds up, until ` + "`save \"\"`" + ` clears it; ` + "`client-output-buffer-limit`" + `
  sets the class that it names.
- An unknown directive is an error. Directives of redis.conf that mean nothing here are listed at the end.

The same words work as flags. The word after ` + "`--name`" + ` is always its value, even if it starts with ` + "`--`" + `; only ` + "`--save`" + ` may stand alone.
Variables that Kubernetes sets for a service named headgate (` + "`HEADGATE_SERVICE_HOST`" + `, ` + "`HEADGATE_PORT=tcp://…`" + `) are left alone.
`

const referenceIgnored = `
## Directives of redis.conf without effect

These are accepted, so that a file made for Redis can be used, and a notice is logged for each. A value that asks for what is not there
is refused where the last column says so. ` + "`loadmodule`" + ` is refused too, except for redis_cell, whose commands are built in.

| Directive | Why it has no effect | Accepted |
|---|---|---|
`

const referenceSystemd = `
## Under systemd

With ` + "`Type=notify`" + ` (or ` + "`notify-reload`" + `) the server tells when its data are loaded and it is ready, when it reads its configuration again and
when it ends, and answers ` + "`WatchdogSec`" + `. Sockets of a socket unit take the place of port, bind and unixsocket; those with
` + "`FileDescriptorName=tls`" + ` that of tls-port, which must be set as well. SAVE and a snapshot at the end keep the server from answering
the watchdog for as long as they take.

## Signals

SIGTERM and SIGINT end the server as shutdown-on-sigterm and shutdown-on-sigint say: what was read is answered, what was acknowledged is on
the disk as far as appendfsync and save promise it, and the exit code is 0. SIGINT while that is under way ends the process at once, whatever
it is doing; SIGTERM does not, and neither does anything within a second of the first signal. If the snapshot could not be saved and the
server kept running, the next signal after that second has it try again, for five seconds at most, and ends it in any case. SIGHUP reads the configuration file again and reopens the log file.
`

// Reference writes docs/config.md.
func Reference(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, referenceHead, maxIncludeDepth, maxFiles, maxFileSize/kib)
	for _, group := range groups {
		fmt.Fprintf(b, "\n## %s\n\n| Directive | Default | Values | Settable | Since | |\n|---|---|---|---|---|---|\n", group)
		for _, d := range directives {
			if d.Group == group {
				fmt.Fprintf(b, "| %s | `%s` | %s | %s | %s | %s |\n",
					strings.Join(codes(d.names()), ", formerly "), d.Default, escapeCell(d.Syntax()), d.settableText(), d.Since, escapeCell(d.Summary))
			}
		}
	}
	fmt.Fprint(b, referenceSystemd)
	fmt.Fprint(b, referenceIgnored)
	for _, entry := range ignored {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", entry.Name, escapeCell(entry.Reason), entry.acceptedText())
	}
	return b.Flush()
}

func codes(words []string) []string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = "`" + word + "`"
	}
	return list
}

// escapeCell keeps a text from ending its cell of a table, or from being taken for emphasis.
func escapeCell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`).Replace(s)
}

func (d *Directive) settableText() string {
	switch {
	case d.Guarded:
		return "guarded"
	case d.Settable:
		return "yes"
	}
	return "at start"
}

func (e Ignored) acceptedText() string {
	switch {
	case e.Never:
		return "never"
	case e.Only == nil:
		return "any value"
	}
	shown := make([]string, len(e.Only))
	for i, value := range e.Only {
		shown[i] = "`" + value + "`"
		if value == "" {
			shown[i] = "`\"\"`"
		}
	}
	return "only " + strings.Join(shown, ", ")
}
