package check

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"headgate/persistence"
	"headgate/persistence/aof"
)

// Start is a start of a server, as far as its configuration decides which files it loads.
type Start struct {
	AppendOnly bool
	Log        aof.Options // the append-only file that it has, or would have
	Snapshot   string      // the path of the snapshot
	Truncates  bool        // what is damaged at the end of the append-only file is cut off
}

// readings is how often files are read at most that a server replaces meanwhile.
const readings = 3

// Start reads the files that a start loads, and says in words which these are. A warning says what it does without data that are there. The error is
// why the start is refused. Nothing is changed, and a server that uses the directory now is not disturbed: of the files that it writes, the end
// may be missing, and after a rewrite there are others.
func (c *Checker) Start(s Start) (what string, warnings []string, err error) {
	for range readings {
		if what, warnings, err = c.judge(s); err == nil || !s.inUse() {
			break
		}
	}
	return what, warnings, err
}

// judge is one reading.
func (c *Checker) judge(s Start) (what string, warnings []string, err error) {
	what, warning, err := s.Loads()
	if err != nil {
		return "", nil, err
	}
	if warning != "" {
		warnings = append(warnings, warning)
	}
	c.begin()
	if err := c.read(s); err != nil {
		return "", nil, err
	}
	switch worst := c.meets(s); {
	case worst.damage == refused:
		return "", nil, errors.New(worst.why)
	case worst.damage != mended || worst.ends && s.inUse():
	case !s.Truncates:
		return "", nil, fmt.Errorf("%s, and aof-load-truncated is no: a start is refused", worst.why)
	case worst.lost > 0:
		warnings = append(warnings, fmt.Sprintf("cuts off the last %d bytes, and loads the rest: %s", worst.lost, worst.why))
	}
	return what, warnings, nil
}

// read looks at the files that the start loads.
func (c *Checker) read(s Start) error {
	if !s.AppendOnly {
		there, _, err := s.hasSnapshot()
		if err != nil || !there {
			return err
		}
		return c.snapshotFile(s.Snapshot)
	}
	paths, err := aof.Paths(s.Log)
	switch {
	case err != nil || len(paths) == 0:
		return err
	case paths[0] == s.Log.Old:
		return c.log(s.Log.Old, aof.Entry{Name: s.Log.Name, Kind: aof.Base}, true)
	}
	return c.set(s.Log.Dir, s.Log.Name)
}

// inUse reports whether a server uses the data directory now, as far as can be told.
func (s *Start) inUse() bool {
	lock, err := s.Log.FS.Lock(filepath.Dir(s.Snapshot))
	if err == nil {
		lock.Close()
	}
	return errors.As(err, new(*persistence.HeldError))
}

// Loads says in words which files the start loads. A warning, if there is one, says what it does without data that are there. Nothing is changed.
func (s *Start) Loads() (what, warning string, err error) {
	log, damaged := aof.Paths(s.Log)
	if damaged != nil && s.AppendOnly {
		return "", "", damaged
	}
	snapshot, dangling, err := s.hasSnapshot()
	if err != nil {
		return "", "", err
	}
	manifest := filepath.Join(s.Log.Dir, aof.ManifestName(s.Log.Name))
	switch {
	case s.AppendOnly && len(log) > 0:
		if missing := s.missing(log); missing != "" {
			return "", "", fmt.Errorf("the manifest names %s, which cannot be opened: a start is refused", missing)
		}
		return strings.Join(log, " and then "), "", nil
	case s.AppendOnly && snapshot:
		return "nothing", "begins empty, since there is no " + manifest + ", and its next snapshot overwrites " + s.Snapshot + toKeepSnapshot, nil
	case s.AppendOnly:
		return "nothing: there is no " + manifest, "", nil
	case damaged != nil:
		warning = "does not load the append-only file in " + s.Log.Dir + ", which is damaged"
	case len(log) > 0:
		warning = "does not load the append-only file in " + filepath.Dir(log[0]) + toUseLog
	}
	switch {
	case snapshot:
		return s.Snapshot, warning, nil
	case dangling:
		return "nothing: " + s.Snapshot + danglingLink, warning, nil
	}
	return "nothing: there is no " + s.Snapshot, warning, nil
}

// What warnings end with: how a start has the data that the one in question leaves alone.
const (
	toKeepSnapshot = ": to keep those data, start with appendonly no, and then send CONFIG SET appendonly yes"
	toUseLog       = ": to use its data, start with appendonly yes"
)

// missing returns the first of the files that cannot be opened, "" if all can.
func (s *Start) missing(paths []string) string {
	for _, path := range paths {
		f, err := s.Log.FS.Open(path)
		if err != nil {
			return path
		}
		f.Close()
	}
	return ""
}

// hasSnapshot reports whether there is a file where the snapshot is looked for, or a link to one that is missing.
func (s *Start) hasSnapshot() (there, dangling bool, err error) {
	names, err := s.Log.FS.List(filepath.Dir(s.Snapshot))
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil || !slices.Contains(names, filepath.Base(s.Snapshot)) {
		return false, false, err
	}
	dangling = dangles(s.Log.FS, s.Snapshot)
	return !dangling, dangling, nil
}

// dangles reports whether what is in a directory under a name is a link to a file that is missing.
func dangles(fsys persistence.FS, path string) bool {
	f, err := fsys.Open(path)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// danglingLink says behind its name what is wrong with a snapshot that is no more than a link.
const danglingLink = " is a link to a file that is missing"

// starts says what each of the starts loads, or that it is refused.
func (c *Checker) starts() {
	for _, s := range c.Starts {
		what, warning, err := s.Loads()
		end := ""
		switch c.meets(s).damage {
		case refused:
			if err == nil { // else what is wrong has been told of by who looked at the manifest
				end = ": it would load " + what
			}
			c.Say("a start with appendonly %s is refused%s", yesNo(s.AppendOnly), end)
			continue
		case mended:
			end = " up to where it is damaged"
		}
		if warning != "" {
			warning = "; it " + c.without(s, warning)
		}
		c.Say("a start with appendonly %s loads %s%s%s", yesNo(s.AppendOnly), what, end, warning)
	}
}

// without is a warning of a start, which does not advise another start if that is refused.
func (c *Checker) without(s Start, warning string) string {
	s.AppendOnly = !s.AppendOnly
	if c.meets(s).damage != refused {
		return warning
	}
	if rest, ok := strings.CutSuffix(warning, toKeepSnapshot); ok {
		return rest + ", which is damaged: to keep what is in it, move it away first"
	}
	if rest, ok := strings.CutSuffix(warning, toUseLog); ok {
		return rest + ", which is damaged"
	}
	return warning
}

// files are those that the start loads.
func (s *Start) files() (paths []string, err error) {
	if s.AppendOnly {
		return aof.Paths(s.Log)
	}
	if snapshot, _, err := s.hasSnapshot(); err != nil || !snapshot {
		return nil, err
	}
	return []string{s.Snapshot}, nil
}

// meets returns the worst damage that a start meets, or none.
func (c *Checker) meets(s Start) (worst finding) {
	files, err := s.files()
	if err != nil {
		return finding{damage: refused, why: err.Error()}
	}
	for _, path := range files {
		if f := c.damaged[filepath.Clean(path)]; f.damage > worst.damage {
			worst = f
		}
	}
	return worst
}

// verdict is what starts make of what was found; without any, one that loads everything.
func (c *Checker) verdict(starts []Start) string {
	if c.whole {
		return "intact"
	}
	if len(starts) == 0 {
		worst := mended
		for _, f := range c.damaged {
			worst = max(worst, f.damage)
		}
		return "damaged: " + worst.String()
	}
	var parts []string
	for _, d := range []damage{refused, mended} {
		var meet []string
		for _, s := range starts {
			if c.meets(s).damage == d {
				meet = append(meet, "appendonly "+yesNo(s.AppendOnly))
			}
		}
		switch len(meet) {
		case 0:
		case len(starts):
			parts = append(parts, d.String())
		default:
			parts = append(parts, "with "+strings.Join(meet, " or ")+" "+d.String())
		}
	}
	if len(parts) == 0 {
		return "damaged, but no start loads what is damaged, unless files have been named otherwise"
	}
	return "damaged: " + strings.Join(parts, "; ")
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
