package journal

import (
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/internal/number"
	"headgate/persistence/rdb"
	"headgate/server/types"
	"headgate/store"
)

const (
	loadSlice = time.Millisecond      // how long loading holds the executor's lock
	loadPause = 50 * time.Microsecond // and for how long it lets others have it
)

// loadOptions say how a snapshot is loaded.
type loadOptions struct {
	// keepExpired has keys past their time loaded too, because commands follow that may be about them.
	keepExpired bool
	// held tells that the caller has the executor's lock and keeps it: nobody is served meanwhile.
	held bool
	// progress, if not nil, is called with the lock held and the number of bytes that have been read.
	progress func(bytes int64)
}

// loaded is what came of loading a snapshot.
type loaded struct {
	keys, expired int
	bytes         int64     // its length
	nowMs         int64     // its time, 0 if it is not one of ours
	rest          io.Reader // what follows it
	position      position
}

// loadRDB loads a snapshot into the keyspace, whose databases must not have its keys, and the functions in it. Unless the executor's
// lock is held it takes that for a moment at a time, and the caller has to see to it that nobody else uses the keyspace. After an error
// a part has been loaded.
func (j *Journal) loadRDB(r io.Reader, o loadOptions) (loaded, error) {
	if !o.held {
		j.Lock()
		defer j.Unlock()
	}
	j.Saving.Partial = true
	slice := time.Now()
	l := newLoader(j.Keys, j.addLibrary)
	l.keepExpired, l.now = o.keepExpired, j.Clock.Read()/1e6
	in := rdb.NewReader(r, rdb.Options{SkipChecksum: !j.Config.Get().RDBChecksum, Progress: func(offset int64) error {
		if o.progress != nil {
			o.progress(offset)
		}
		if o.held || time.Since(slice) < loadSlice {
			return nil
		}
		j.Unlock()
		time.Sleep(loadPause)
		j.Lock()
		j.Keys.SetObserver(nil) // CONFIG SET may have brought it back
		slice = time.Now()
		select {
		case <-j.Stopping():
			return errStopped
		default:
			return nil
		}
	}})
	j.Keys.SetObserver(nil)
	defer func() { j.ObserveKeys(j.Config.Get()) }() // which CONFIG SET may have changed meanwhile
	if err := in.Read(l); err != nil {
		return loaded{}, err
	}
	v := &j.Saving
	v.Partial, v.LoadKeys, v.LoadExpired = false, l.keys, l.expired
	return loaded{keys: l.keys, expired: l.expired, bytes: in.Offset(), nowMs: l.nowMs, rest: in.Rest(), position: l.position}, nil
}

var errStopped = errors.New("the server was told to end")

// addLibrary loads a library of functions. The caller holds the executor's lock.
func (j *Journal) addLibrary(code []byte) error {
	if _, err := j.scripts.Engine.LoadLibrary(code, false); err != nil {
		return fmt.Errorf("a library of functions cannot be loaded: %w", err)
	}
	return nil
}

// rdbLoader is told a snapshot and puts its keys into a keyspace.
type rdbLoader struct {
	types.ValueLoader
	into          *store.Keyspace
	library       func(code []byte) error // is given each library of functions
	now           int64                   // ms
	keepExpired   bool
	keys, expired int
	nowMs         int64 // when it was taken, if that is known
	position      position
	streamDB      int // the database that the stream of a primary is for when it goes on behind it; 0 if it does not say
}

// newLoader returns a loader into a keyspace.
func newLoader(into *store.Keyspace, library func(code []byte) error) *rdbLoader {
	return &rdbLoader{into: into, library: library, ValueLoader: types.ValueLoader{DB: into.DB(0)}}
}

// Aux implements rdb.Sink. What other fields tell is of no use here.
func (l *rdbLoader) Aux(name, value []byte) error {
	switch string(name) {
	case auxNow:
		l.nowMs, _ = number.ParseInt(value)
	case auxStreamDB:
		if n, ok := number.ParseInt(value); ok && n >= 0 && n < int64(l.into.Databases()) {
			l.streamDB = int(n)
			l.position.DB = l.streamDB
		}
	default:
		l.position.aux(string(name), value)
		l.keepExpired = l.keepExpired || l.position.known // replicas wait for their DEL, or the primary sends it
	}
	return nil
}

// Function implements rdb.Sink.
func (l *rdbLoader) Function(code []byte) error { return l.library(code) }

// Database implements rdb.Sink.
func (l *rdbLoader) Database(n int) error {
	if n >= l.into.Databases() {
		return fmt.Errorf("a key of database %d, and there are %d: set databases to a higher number", n, l.into.Databases())
	}
	l.DB = l.into.DB(n)
	return nil
}

// Sizes implements rdb.Sink.
func (l *rdbLoader) Sizes(_, _ uint64) error { return nil }

// Key implements rdb.Sink.
func (l *rdbLoader) Key(name []byte, expireAt int64) error {
	l.Skip = expireAt != 0 && expireAt < l.now && !l.keepExpired
	if l.Skip {
		l.expired++
		return nil
	}
	if l.into.Full(0) {
		return errors.New("the keys need more memory than there is room for")
	}
	l.Begin(l.into, name, expireAt)
	l.keys++
	return nil
}
