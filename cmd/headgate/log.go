package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"headgate/server/command"
	"headgate/server/config"
)

// logOutput is where the log goes: a file that can be opened again after it was renamed, or a given writer. It also says from
// which level on lines are written. Safe for concurrent use.
type logOutput struct {
	path string // "" = no file

	slog.LevelVar
	mu   sync.Mutex
	out  io.Writer
	file *os.File // out, when it is a file that was opened here
}

// openLog opens the configured log file, or takes the fallback when there is none.
func openLog(cfg *config.Config, fallback io.Writer) (*logOutput, error) {
	o := &logOutput{path: cfg.Path(cfg.LogFile), out: fallback}
	o.setLevel(cfg.LogLevel)
	if err := o.reopen(); err != nil {
		return nil, unusableLog(err)
	}
	return o, nil
}

// unusableLog is the error for a log file that cannot be written; nil for none.
func unusableLog(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot open the log file: %w; correct --logfile", err)
}

// setLevel takes the loglevel directive over.
func (o *logOutput) setLevel(level config.LogLevel) {
	o.Set(map[config.LogLevel]slog.Level{
		config.LogDebug: slog.LevelDebug, config.LogVerbose: command.LevelVerbose,
		config.LogNotice: slog.LevelInfo, config.LogWarning: slog.LevelWarn,
	}[level])
}

// handler writes lines in a format. The keys are the same in each.
func (o *logOutput) handler(format config.LogFormat) slog.Handler {
	options := &slog.HandlerOptions{Level: o}
	if format == config.LogText || format == config.LogAuto && o.path == "" && isTerminal(o.out) {
		return slog.NewTextHandler(o, options)
	}
	options.ReplaceAttr = withUnit
	return slog.NewJSONHandler(o, options)
}

// withUnit has JSON show a duration as text does, such as 1.5s, and not as a number of which nobody knows the unit.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// reopen goes on in the file that has the path now.
func (o *logOutput) reopen() error {
	if o.path == "" {
		return nil
	}
	f, err := os.OpenFile(o.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
	}
	o.out, o.file = f, f
	return nil
}

// Write implements io.Writer.
func (o *logOutput) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(line)
}

// Close closes the file, if there is one.
func (o *logOutput) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
