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

Serves the Redis protocol. file.conf has the syntax of redis.conf; a final - reads more of it from standard
input. Flags are directives: --port 7000 --save "" --client-output-buffer-limit normal 64mb 16mb 30
Variables set them too: HEADGATE_PORT=7000. Flags override variables, and variables override the file.

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
			d.writeUsage(b)
		}
	}
	return b.Flush()
}

// writeUsage writes what a directive does, and what values it takes.
func (d *Directive) writeUsage(w io.Writer) {
	for _, line := range wrap(d.Summary+" ("+d.Syntax()+")", usageWidth-6) {
		fmt.Fprintf(w, "      %s\n", line)
	}
}

// Explain returns the help text of the directive with that name, in any case and with or without leading dashes, also of one that is read and has no
// effect. If there is none it is empty, and near is the name that was most likely meant, or empty too.
func Explain(name string) (text, near string) {
	name = strings.ToLower(strings.TrimPrefix(name, "--"))
	var b strings.Builder
	if d := byName[name]; d != nil {
		fmt.Fprintf(&b, "--%s %s\n", d.Name, d.Default)
		d.writeUsage(&b)
		fmt.Fprintf(&b, "      In the environment: %s\n", variableOf(d.Name))
		if d.Settable {
			b.WriteString("      Can change at run time: CONFIG SET, or SIGHUP after editing the file\n")
		} else {
			b.WriteString("      CONFIG SET does not change it\n")
		}
		return b.String(), ""
	}
	if entry, found := findIgnored(name); found {
		fmt.Fprintf(&b, "--%s\n      Accepted, without effect: %s\n", entry.Name, entry.Reason)
		return b.String(), ""
	}
	if name == includeName {
		return includeUsage, ""
	}
	if near = nearest(name); near == name { // one that is refused, whatever its value
		near = ""
	}
	return "", near
}

const (
	includeName  = "include"
	includeUsage = "include path\n      Reads another file at that place, or all files that match a pattern, in order\n"
)

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

A directive can be set in four places, where each overrides those above it. [headgate.conf](../headgate.conf) is a sample file with all directives.

1. the built-in default;
2. the configuration file: ` + "`headgate headgate.conf`" + `, in the syntax of redis.conf, then standard input if the first or last
   word of the command line is ` + "`-`" + `;
3. the environment: ` + "`HEADGATE_`" + ` and the name in capitals with ` + "`_`" + ` for ` + "`-`" + `, as in ` + "`HEADGATE_TCP_KEEPALIVE=60`" + `;
4. the command line: ` + "`headgate --tcp-keepalive 60 --save \"\" --client-output-buffer-limit normal 64mb 16mb 30`" + `.

While the server runs, ` + "`CONFIG SET`" + ` changes the directives that are marked as settable: all that one command names, or none.
` + "`CONFIG REWRITE`" + ` writes the current values to the file and keeps its comments and order. Values that are those of the
environment are left out, so that a secret which it gives is in no file. So is a relative ` + "`dir`" + ` of the command line, which
would start from the one in the file; an absolute one is written. SIGHUP reloads the file: directives that it
sets take effect unless the environment or a flag sets them too, and those that it no longer sets return to their defaults. Directives
that can only be set at start take effect at the next start, the log says so, and ` + "`CONFIG REWRITE`" + ` leaves them as the file has them,
except that it writes the users of the moment, and a primary that REPLICAOF has changed.

## Syntax of the file

- One directive per line: its name in upper or lower case, then its values, separated by blanks. A line that starts with ` + "`#`" + ` is a comment.
- ` + "`\"double quotes\"`" + ` accept ` + "`\\n \\r \\t \\a \\b \\\" \\\\`" + ` and ` + "`\\xHH`" + `; in ` + "`'single quotes'`" + ` only ` + "`\\'`" + ` is special.
- Sizes have units: ` + "`k m g`" + ` are powers of 1000, ` + "`kb mb gb`" + ` powers of 1024, in upper or lower case; a bare number is bytes.
- ` + "`include path`" + ` reads another file at that place, and ` + "`include conf.d/*.conf`" + ` all files that match, in order; there may be none. Paths are relative to
  the directory in which the server was started. Includes may be nested %d deep, and at most %d files of up to %d KiB are read.
- If a directive is given twice, the last one applies. ` + "`save`" + ` adds up, until ` + "`save \"\"`" + ` clears it; ` + "`client-output-buffer-limit`" + `
  sets the class that it names, and ` + "`policy`" + ` the policy.
- An unknown directive is an error. Directives of redis.conf without effect are listed at the end.

The same names work as flags. The word after ` + "`--name`" + ` is always its value, even if it starts with ` + "`--`" + `; only ` + "`--save`" + ` may stand alone, and ` + "`--check-config`" + ` is
a value nowhere.
Variables that Kubernetes sets for a service named headgate (` + "`HEADGATE_SERVICE_HOST`" + `, ` + "`HEADGATE_PORT=tcp://…`" + `) are ignored.
`

const referenceIgnored = `
## Directives of redis.conf without effect

These are accepted so that a file written for Redis can be used; the log names each of them. Where the last column lists values, others
are refused. ` + "`loadmodule`" + ` is refused too, except for redis_cell, whose commands are built in.

| Directive | Why it has no effect | Accepted |
|---|---|---|
`

const referenceSystemd = `
## Under systemd

With ` + "`Type=notify`" + ` (or ` + "`notify-reload`" + `) the server notifies systemd when it is ready, when it reloads its configuration and when it shuts
down, and answers ` + "`WatchdogSec`" + `. Sockets of a socket unit replace port, bind and unixsocket; those with
` + "`FileDescriptorName=tls`" + ` replace tls-port, which must be set as well. SAVE and the snapshot at shutdown keep the server from answering
the watchdog while they run.

## Signals

SIGTERM and SIGINT shut the server down, as shutdown-on-sigterm and shutdown-on-sigint specify. Commands that were read are answered,
acknowledged changes are on disk as far as appendfsync and save promise it, and the exit code is 0. A SIGINT during the shutdown ends the
process immediately; a SIGTERM does not, nor does any signal within a second of the first. If the data could not be saved and the
server kept running, the next signal after that second makes it try again, for at most five seconds, and then ends it in any case. SIGHUP
reloads the configuration file and reopens the log file.
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
