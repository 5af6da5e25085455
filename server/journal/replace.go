package journal

import (
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/persistence/rdb"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// Replacement are data that have been loaded beside those that are served. They go into use whole, by [Journal.Replace], or not at all.
type Replacement struct {
	Keys     int       // that were loaded, those past their time among them
	Bytes    int64     // length of the snapshot
	StreamDB int       // the database that what follows in a primary's stream is for, until it says another
	Rest     io.Reader // what follows the snapshot

	beside    *store.Keyspace
	libraries [][]byte
}

// LoadBeside loads a snapshot into a keyspace of its own. Nobody is in its way: it does not take the executor's lock but for a moment at its
// beginning. Keys past their time are loaded, too. The errors are those of [rdb.Reader.Read]; progress, if not nil, is called now and then
// with the number of bytes that have been read, and its error ends the loading.
func (j *Journal) LoadBeside(r io.Reader, progress func(bytes int64) error) (*Replacement, error) {
	j.Lock()
	p := &Replacement{beside: j.Keys.Beside()}
	j.Unlock()
	l := newLoader(p.beside, func(code []byte) error {
		p.libraries = append(p.libraries, append([]byte(nil), code...))
		return nil
	})
	l.keepExpired = true
	in := rdb.NewReader(r, rdb.Options{SkipChecksum: !j.Config.Get().RDBChecksum, Progress: progress})
	if err := in.Read(l); err != nil {
		p.Discard()
		return nil, err
	}
	p.Keys, p.Bytes, p.StreamDB, p.Rest = l.keys, in.Offset(), l.streamDB, in.Rest()
	return p, nil
}

// Discard gives the memory back, of data that do not go into use or of those that they have replaced.
func (p *Replacement) Discard() { p.beside.Close() }

// replacePause is the time between two looks whether what is in the way of a replacement has ended.
const replacePause = time.Millisecond

// ErrReplaced is why a replacement has not been used: whoever asked for it wants it no more.
var ErrReplaced = errors.New("it is not wanted any more")

// errNotYet is why a replacement is tried again: nothing may change keys at present, or the append-only file is being rewritten.
var errNotYet = errors.New("the data cannot be replaced at present")

// Replace has the data be those that were loaded beside them, with the functions, and calls then, all under one hold of the executor's lock. It waits
// while nothing may change keys, or the append-only file is at work, and what others do meanwhile is logged. The append-only file is begun anew with the new data: until that is done a
// restart finds the old data, whole. wanted is asked with the lock held, for the last time just before; if it says no, or there is an error, the old data
// stay, and so does the append-only file. The caller does not hold the lock.
func (j *Journal) Replace(p *Replacement, wanted func() bool, then func()) error {
	for {
		err := j.prepareReplace(wanted)
		if err == nil {
			err = j.tryReplace(p, wanted, then)
		}
		if err != errNotYet {
			j.beginFileAnew()
			return err
		}
		time.Sleep(replacePause)
	}
}

// beginFileAnew has the append-only file begun if there is none: it was ended with the old data, or was only being begun and was given up for new ones.
func (j *Journal) beginFileAnew() {
	j.Lock()
	defer j.Unlock()
	if j.Config.Get().AppendOnly {
		j.wakeRewriter()
	}
}

// prepareReplace gives up a rewrite of an append-only file that would have to be written anew at once, or returns why nothing is replaced now.
func (j *Journal) prepareReplace(wanted func() bool) error {
	j.Lock()
	defer j.Unlock()
	if err := j.mayNotReplace(wanted); err != nil {
		return err
	}
	if j.AOF.Rewriter.Rewriting {
		j.cancelSnapshot()
	}
	return nil
}

// mayNotReplace returns why the data are not replaced now, or nil. The caller holds the executor's lock.
func (j *Journal) mayNotReplace(wanted func() bool) error {
	switch {
	case !wanted():
		return ErrReplaced
	case j.Gate.Has(command.GateHalts):
		return errNotYet
	}
	return nil
}

// tryReplace replaces the data, and ends the append-only file of the old ones, unless there is an error.
func (j *Journal) tryReplace(p *Replacement, wanted func() bool, then func()) error {
	a := &j.AOF
	if !a.files.TryLock() { // by a rewrite that has begun since, to be given up in turn
		return errNotYet
	}
	defer a.files.Unlock()
	a.commits.Lock()
	last, nowMs, err := j.adopt(p, wanted, then)
	if err == nil && a.Log != nil {
		_, unwritten := j.writeBatch(last, nowMs, config.FsyncNo) // closing syncs it
		j.closeFile(unwritten)
	}
	a.commits.Unlock()
	if err != nil {
		return err
	}
	j.leaveSet()
	return nil
}

// adopt has the data be the new ones. From then on nothing is logged; it returns the last effects on the old data, and the time in ms. The caller holds
// commits.
func (j *Journal) adopt(p *Replacement, wanted func() bool, then func()) (last []byte, nowMs int64, err error) {
	j.Lock()
	defer j.Unlock()
	if err := j.mayNotReplace(wanted); err != nil {
		return nil, 0, err
	}
	if err := j.replaceLibraries(p.libraries); err != nil {
		return nil, 0, err
	}
	j.cancelSnapshot()
	if j.AOF.Log != nil {
		last, nowMs = j.Effects.Take(nil), j.Clock.Now/1e6
		j.stopLogging()
	}
	j.hub.InvalidateAll()
	j.Keys.Adopt(p.beside)
	j.Saving.Partial = false
	then()
	return last, nowMs, nil
}

// replaceLibraries has the functions be those of the given libraries, or after an error those that there were. The caller holds the
// executor's lock.
func (j *Journal) replaceLibraries(libraries [][]byte) error {
	engine := j.scripts.Engine
	before := engine.ListLibraries()
	engine.FlushLibraries()
	for _, code := range libraries {
		if err := j.addLibrary(code); err != nil {
			engine.FlushLibraries()
			for _, lib := range before {
				if err := j.addLibrary([]byte(lib.Code)); err != nil {
					j.Logger.Error("a library of functions is lost", "library", lib.Name, "err", err)
				}
			}
			return fmt.Errorf("the functions stay as they were: %w", err)
		}
	}
	return nil
}
