package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"headgate/persistence"
)

// What directives refuse, or change, beyond what their kinds say.

func checkSocketPath(c *Config, _ *Host) error { return checkSocketLength(c.UnixSocket) }

func checkHTTPSocketPath(c *Config, _ *Host) error { return checkSocketLength(c.HTTPUnixSocket) }

func checkSocketLength(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("argument must be a path of at most %d bytes", maxSocketPath)
	}
	return nil
}

func stayInForeground(c *Config, _ *Host) error {
	c.Daemonize = false
	return nil
}

// clampTopWindow has the lists look back a second at least.
func clampTopWindow(c *Config, _ *Host) error {
	c.TopWindow = max(c.TopWindow, time.Second)
	return nil
}

func daemonizeNotice(args []string) string {
	if strings.EqualFold(args[0], "yes") {
		return "daemonize is ignored: headgate stays in the foreground; let systemd or the container run it"
	}
	return ""
}

func clampHz(c *Config, _ *Host) error {
	c.Hz = min(max(c.Hz, minHz), maxHz)
	return nil
}

// checkFileName refuses what is not a name within a directory, in Redis's words.
func checkFileName(directive, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s can't be empty", directive)
	case persistence.Reserved(name):
		return fmt.Errorf("%s can't be %s, which the server uses for itself", directive, name)
	case name != filepath.Base(name) || name == "." || name == "..":
		return fmt.Errorf("%s can't be a path, just a %s", directive, map[bool]string{true: "dirname", false: "filename"}[directive == "appenddirname"])
	}
	return nil
}

func checkAppendDirName(c *Config, _ *Host) error {
	return checkFileName("appenddirname", c.AppendDirName)
}

func checkAppendFilename(c *Config, _ *Host) error {
	return checkFileName("appendfilename", c.AppendFilename)
}

func checkDBFilename(c *Config, _ *Host) error {
	if strings.ContainsRune(c.DBFilename, '/') {
		return redisText("dbfilename can't be a path, just a filename")
	}
	if persistence.Reserved(c.DBFilename) {
		return fmt.Errorf("dbfilename can't be %s, which the server uses for itself", c.DBFilename)
	}
	return nil
}

func checkDir(c *Config, h *Host) error { return h.CheckDir(c.Dir) }
