package simulate

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Simulation is a run of headgate simulate.
type Simulation struct {
	*Options
	Stdin    io.Reader
	Stop     *atomic.Bool // set: the log ends here
	Progress io.Writer    // nil: nobody looks on
}

const (
	standardInput = "-"
	maxLine       = 64 << 10 // bytes of a line; longer ones are not understood
	maxStrange    = 3        // lines that are shown of those that were not understood
	maxShown      = 120      // bytes of each
	looksEvery    = 1 << 14  // lines between two looks at the clock
	showsEvery    = 500 * time.Millisecond
)

// reading is the log as far as it has been read.
type reading struct {
	*Simulation
	template template
	format   format
	kind     string
	runner   *runner
	record   record
	key      []byte

	lines   uint64
	broken  []BrokenLog
	keyless uint64
	strange uint64
	shown   []StrangeLine
	next    time.Time
}

// Run reads the logs and writes what came of them.
func (s *Simulation) Run(out io.Writer) error {
	t, err := parseTemplate(s.Key)
	if err != nil {
		return err
	}
	runner, err := newRunner(s.Policies, s.Spare > 0)
	if err != nil {
		return err
	}
	if err := s.checkPlot(); err != nil {
		return err
	}
	l := &reading{Simulation: s, template: t, runner: runner, next: time.Now().Add(showsEvery)}
	for _, name := range s.Logs {
		if err := l.open(name); err != nil {
			return err
		}
	}
	if s.Progress != nil {
		fmt.Fprint(s.Progress, "\r\033[K")
	}
	runner.end()
	report, err := newReport(l)
	if err != nil {
		return err
	}
	write := report.writeText
	if s.JSON {
		write = report.writeJSON
	}
	if err := write(out); err != nil { // before the plot, which may have no place to go
		return err
	}
	if err := report.useless(); err != nil || s.SVG == "" {
		return err
	}
	return os.WriteFile(s.SVG, []byte(report.svg()), 0o644)
}

// checkPlot refuses a plot in the place of a log.
func (s *Simulation) checkPlot() error {
	plot, err := os.Stat(s.SVG)
	if s.SVG == "" || err != nil || !plot.Mode().IsRegular() {
		return nil
	}
	for _, name := range s.Logs {
		if log, err := os.Stat(name); err == nil && os.SameFile(log, plot) {
			return fmt.Errorf("--svg %s is a log that is to be read: name another file for the plot", s.SVG)
		}
	}
	return nil
}

// open reads one log.
func (l *reading) open(name string) error {
	if name == standardInput {
		return l.unpack(l.Stdin, "the standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(l.unpack(f, name), f.Close())
}

// unpack reads a log that may be compressed, which its first bytes tell.
func (l *reading) unpack(in io.Reader, name string) error {
	b := bufio.NewReaderSize(in, maxLine)
	var err error
	if magic, _ := b.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		var unzipped *gzip.Reader
		if unzipped, err = gzip.NewReader(b); err == nil {
			b = bufio.NewReaderSize(unzipped, maxLine)
		}
	}
	if mark, _ := b.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = b.Discard(len(mark)) // it has been read
	}
	if err == nil {
		err = l.read(b)
	}
	switch {
	case breaksOff(err): // what it had until then is as good as before
		l.broken = append(l.broken, BrokenLog{Log: name, Error: err.Error()})
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// byteOrderMark is what some editors put before a text.
const byteOrderMark = "\ufeff"

// breaksOff reports whether an error says that a compressed log is not whole, as one that is still being written or was cut while it was copied.
func breaksOff(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)
}

func (l *reading) read(b *bufio.Reader) error {
	if l.format == nil {
		if l.kind = l.Format; l.kind == autoFormat {
			beginning, _ := b.Peek(maxLine)
			l.kind = detect(beginning)
		}
		var err error
		if l.format, err = newFormat(l.kind, l.template.fields); err != nil {
			return err
		}
	}
	for !l.Stop.Load() {
		line, err := b.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 {
			if err := l.line(bytes.TrimRight(line, "\r\n"), long); err != nil {
				return err
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// line takes one line.
func (l *reading) line(line []byte, long bool) (err error) {
	if l.lines++; l.lines%looksEvery == 0 {
		l.progress()
	}
	if len(line) == 0 {
		return nil
	}
	if long || !l.format.parse(line, &l.record) {
		if l.strange++; len(l.shown) < maxStrange {
			l.shown = append(l.shown, StrangeLine{Line: l.lines, Text: fmt.Sprintf("%.*q", maxShown, line)})
		}
		return nil
	}
	key, memory, ok := l.template.render(&l.record, l.key)
	l.key = memory
	if !ok {
		l.keyless++
		return nil
	}
	return l.runner.take(key, l.record.ns)
}

func (l *reading) progress() {
	if l.Progress == nil || time.Now().Before(l.next) {
		return
	}
	l.next = time.Now().Add(showsEvery)
	fmt.Fprintf(l.Progress, "\r%s, %s\033[K", countOf(l.lines, "line"), countOf(uint64(len(l.runner.calls)), "key"))
}
