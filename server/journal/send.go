package journal

import (
	"fmt"
	"io"

	"headgate/persistence"
	"headgate/server/command"
)

// Receiver takes a snapshot that is made for replicas. Write and Finish are called by a goroutine of the snapshot's own, without the
// executor's lock, and must not take it, since whoever gives the snapshot up holds it while they end; the rest with it.
type Receiver struct {
	DB     int                   // the number of the database that the stream behind the snapshot is for at first
	Write  func(p []byte) error  // takes the next part; an error ends the snapshot
	Finish func(err error) error // is called once, after the last part or the first failure, which err is then. What it returns goes to Done
	Done   func(err error)       // is called last
	Hurry  func()                // see to it that Write returns soon, since commands wait for it
	Abort  func()                // the same, since the snapshot is given up
}

// Send begins a snapshot for replicas, of the data as they are now, and reports false if that is not possible yet: another one is under way,
// data are being loaded, or a script is in the midst of its changes. The caller holds the executor's lock.
func (j *Journal) Send(to Receiver) bool {
	if j.Snapshot != nil || j.Gate.Has(command.GateBusy) || j.Effects.Depth > 0 || j.mayNotSave() {
		return false
	}
	j.startSnapshot(snapshotJob{
		what: "the snapshot for replicas", sends: true, db: to.DB,
		write: to.Write, finish: to.Finish, done: to.Done, hurry: to.Hurry, abort: to.Abort,
	})
	return true
}

// sends reports whether a snapshot for replicas is under way. The caller holds the executor's lock.
func (j *Journal) sends() bool { return j.Snapshot != nil && j.Snapshot.job.sends }

// sendFile is the name of a snapshot's file that replicas are sent.
const sendFile = "replicas.rdb" + persistence.TempSuffix

// SendFile is a file with a snapshot that replicas are sent. It is not safe for concurrent use.
type SendFile struct {
	journal   *Journal
	dir, name string
	file      persistence.File // while it is written
	held      bool             // dir is
}

// NewSendFile returns the file that the next snapshot for replicas can be written to. There is one at a time. It makes nothing yet.
func (j *Journal) NewSendFile() *SendFile {
	cfg := j.Config.Get()
	return &SendFile{journal: j, dir: cfg.Dir, name: cfg.Path(sendFile)}
}

// Write implements io.Writer. The first part makes the file.
func (f *SendFile) Write(p []byte) (n int, err error) {
	if f.file == nil {
		if err := f.journal.useDir(f.dir); err != nil {
			return 0, err
		}
		f.held = true
		if f.file, err = f.journal.FS.CreateLarge(f.name, snapshotPerm); err != nil {
			return 0, err
		}
	}
	return f.file.Write(p)
}

// Finish ends the writing. After an error, its own or the one that it is given, the file is gone.
func (f *SendFile) Finish(err error) error {
	if f.file == nil {
		f.leave()
		return err
	}
	if err == nil {
		err = f.file.Sync() // before, some of it may be kept back
	}
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = f.Remove()
		return fmt.Errorf("the snapshot for replicas cannot be written to %s: %w", f.name, err)
	}
	return nil
}

// Open opens the file for reading, and says how many bytes it has. It is called between Finish and Remove.
func (f *SendFile) Open() (io.ReadCloser, int64, error) {
	file, err := f.journal.FS.Open(f.name)
	if err != nil {
		return nil, 0, err
	}
	return file, file.Size(), nil
}

// Remove deletes the file. Who has it open may go on reading.
func (f *SendFile) Remove() error {
	defer f.leave()
	return f.journal.FS.Remove(f.name)
}

// leave lets go of the directory.
func (f *SendFile) leave() {
	if f.held {
		f.held = false
		f.journal.leaveDir(f.dir)
	}
}
