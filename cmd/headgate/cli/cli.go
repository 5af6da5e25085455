package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"headgate/internal/quoting"
	"headgate/internal/reply"

	"golang.org/x/term"
)

// ErrReply is what Run returns with FailOnError when a command was answered with an error.
var ErrReply = errors.New("a command was answered with an error")

// maxLine is the longest line of the input, in bytes.
const maxLine = 64 << 20

// slow is how long a command takes at least for the prompt to say how long.
const slow = 500 * time.Millisecond

// Client is one run of headgate cli.
type Client struct {
	Options *Options
	In      io.Reader
	Out     io.Writer

	session  session
	commands *catalogue // nil: made when it is first needed
	raw      bool
	failed   bool // a command was answered with an error
}

// Run sends the commands and prints their replies. It returns when these, or the input, have ended; or what keeps it from sending more.
func (c *Client) Run() error {
	c.session = session{o: c.Options, db: c.Options.DB}
	defer c.session.close()
	out, terminal := c.Out.(*os.File)
	terminal = terminal && term.IsTerminal(int(out.Fd()))
	if c.raw = !terminal; c.Options.Raw != nil {
		c.raw = *c.Options.Raw
	}
	in, typed := c.In.(*os.File)
	var err error
	switch {
	case len(c.Options.Command) > 0:
		err = c.obey(c.Options.Command)
	case typed && terminal && term.IsTerminal(int(in.Fd())):
		return c.converse(in, out)
	default:
		err = c.lines()
	}
	if err == nil && c.failed && c.Options.FailOnError {
		err = ErrReply
	}
	return err
}

// lines runs a command from each line of the input.
func (c *Client) lines() error {
	scanner := bufio.NewScanner(c.In)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		words, err := quoting.Split(scanner.Text())
		switch {
		case err != nil:
			fmt.Fprintln(c.Out, "Invalid argument(s)")
		case len(words) == 0:
		case ends(words):
			return nil
		default:
			if err := c.obey(words); err != nil {
				return err
			}
		}
	}
	return scanner.Err()
}

// obey sends a command and prints its reply, or explains what help is asked about, for which no server is needed.
func (c *Client) obey(words []string) error {
	if !strings.EqualFold(words[0], "help") {
		return c.call(words)
	}
	_, err := io.WriteString(c.Out, c.catalogue().help(words[1:]))
	return err
}

// catalogue returns the commands that can be explained.
func (c *Client) catalogue() *catalogue {
	if c.commands == nil {
		c.commands = newCatalogue()
	}
	return c.commands
}

// ends reports whether a line ends the program.
func ends(words []string) bool {
	return len(words) == 1 && (strings.EqualFold(words[0], "quit") || strings.EqualFold(words[0], "exit"))
}

// call sends a command and prints its reply, or its replies where it has them sent from then on.
func (c *Client) call(words []string) error {
	if err := c.session.connect(); err != nil {
		return err
	}
	v, err := c.session.ask(words)
	for left := c.session.replies(words); err == nil; {
		c.print(words, &v)
		if v.Kind != '>' || unsubscribes(words) { // any other push is no reply
			left--
		}
		if v.IsError() || left == 0 {
			break
		}
		v, err = c.session.read()
	}
	if err != nil && strings.EqualFold(words[0], "shutdown") {
		return nil // it has obeyed, and answers only what is wrong
	}
	if err != nil {
		return fmt.Errorf("the server at %s has closed the connection: %w%s", c.Options.Address, err, c.session.advice(err))
	}
	c.session.follow(words, &v)
	return nil
}

// streams reports whether a command is answered by messages without an end.
func streams(words []string) bool {
	return slices.Contains([]string{"MONITOR", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}, strings.ToUpper(words[0]))
}

// unsubscribes reports whether a command is answered once for each channel that it names, by pushes in RESP3.
func unsubscribes(words []string) bool {
	return slices.Contains([]string{"UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}, strings.ToUpper(words[0]))
}

// plain are the commands whose replies are texts of several lines, which are printed without quotes.
var plain = [][]string{
	{"INFO"}, {"LOLWUT"}, {"CLIENT", "LIST"}, {"CLIENT", "INFO"}, {"CLUSTER", "INFO"}, {"CLUSTER", "NODES"}, {"LATENCY", "GRAPH"}, {"LATENCY", "DOCTOR"},
	{"MEMORY", "DOCTOR"}, {"MEMORY", "MALLOC-STATS"},
}

// print prints a reply.
func (c *Client) print(words []string, v *reply.Value) {
	c.failed = c.failed || v.IsError()
	text := slices.ContainsFunc(plain, func(name []string) bool {
		return len(words) >= len(name) && slices.EqualFunc(name, words[:len(name)], strings.EqualFold)
	})
	if c.raw || text && !v.IsError() {
		_, _ = io.WriteString(c.Out, v.Raw())
	} else {
		_, _ = io.WriteString(c.Out, v.Pretty())
	}
}

// converse runs what is typed at a terminal until it ends. What goes wrong is printed, and the next command connects again.
func (c *Client) converse(in, out *os.File) error {
	if err := c.session.connect(); err != nil {
		fmt.Fprintln(c.Out, "Error:", err)
	}
	fd := int(in.Fd())
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, out}, "")
	editor.AutoCompleteCallback = func(line string, at int, key rune) (string, int, bool) {
		return c.catalogue().complete(editor, line, at, key)
	}
	for {
		editor.SetPrompt(c.session.prompt())
		if width, height, err := term.GetSize(fd); err == nil && width > 0 { // some terminals do not say
			_ = editor.SetSize(width, height)
		}
		before, err := term.MakeRaw(fd)
		if err != nil {
			return err
		}
		line, err := editor.ReadLine()
		_ = term.Restore(fd, before)
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		words, err := quoting.Split(line)
		switch {
		case err != nil:
			fmt.Fprintln(c.Out, "Invalid argument(s)")
		case len(words) == 0:
		case ends(words):
			return nil
		default:
			began := time.Now()
			if err := c.obey(words); err != nil {
				fmt.Fprintln(c.Out, "Error:", err)
			}
			if took := time.Since(began); took >= slow && !c.raw {
				fmt.Fprintf(c.Out, "(%.2fs)\n", took.Seconds())
			}
		}
	}
}
