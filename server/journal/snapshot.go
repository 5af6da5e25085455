package journal

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"headgate/persistence/rdb"
	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/observe"
	"headgate/store"
)

const (
	snapshotChunk    = 64 << 10 // bytes handed to the goroutine that writes, at a time
	snapshotChunks   = 512      // chunks that may wait for it: 32 MiB
	snapshotAhead    = 128      // chunks that slices may have wait; the rest is room for what writes tell while the disk is slow
	snapshotStep     = 4 << 10  // bytes told between two looks at the clock
	snapshotSaveStep = 1 << 20  // the same while nobody else is served
	snapshotMinExtra = 4 << 20  // bytes that a snapshot may keep for itself beside the data, at least; see store.Snapshot
	snapshotShare    = 8        // and as a share of the memory that is used
	snapshotFullWait = time.Millisecond
	snapshotHurry    = 20 * time.Millisecond  // how long commands wait for those who are sent a snapshot before the slow ones are told to hurry
	snapshotWaits    = 200 * time.Millisecond // and how long in all
	snapshotPause    = 4 * command.SliceTime  // from one slice to the next while clients are served
	snapshotPatience = 2 * time.Millisecond   // how much longer while somebody always wants something
	snapshotCalm     = 10 * time.Millisecond  // how long nobody has wanted anything when it may have all the time there is
)

// auxNow is the name of the field that has a snapshot's time in ms since the Unix epoch: a start goes on from there if the wall is behind
// it.
const auxNow = "headgate-now"

// auxStreamDB is the name of the field in which a primary that is a replica itself says for which database its stream goes on.
const auxStreamDB = "repl-stream-db"

// snapshotJob is what becomes of a snapshot's bytes. write and finish are called by a goroutine of the snapshot's own, without the
// executor's lock; done with it.
type snapshotJob struct {
	what  string // for the log: "the snapshot", …
	base  bool   // it is the beginning of an append-only file
	sends bool   // it goes to replicas, and not to a file that is kept
	db    int    // for sends: what the stream behind it is for at first
	write func(p []byte) error
	// finish is called once, after the last byte or the first failure, which err is then. What it returns goes to done.
	finish func(err error) error
	done   func(err error)
	// hurry is called, with the executor's lock held, when so much waits for write that commands have to wait, too: it sees to it that write
	// returns soon, if it has kept them. nil: they wait.
	hurry func()
	// abort is called, with the executor's lock held, before the snapshot is given up: write is to return soon. May be nil.
	abort func()
}

// snapshotRun is a snapshot under way: the store tells its keys in slices on the loop, or when one is about to change; the
// encoder makes bytes of them, which a goroutine writes. The executor's lock guards all but what the goroutine has.
type snapshotRun struct {
	*rdb.Encoder // told the keys, by way of Key
	journal      *Journal
	job          snapshotJob
	Keys         *store.Snapshot // which of them were told
	checksum     bool

	chunks chan []byte // to the goroutine; closed after the last
	spare  chan []byte // back from it
	result chan error  // of finish
	failed atomic.Bool // the goroutine could not write: there is no point in going on

	waited  time.Duration // commands have, for those who are sent it
	extra   int           // the most bytes that were kept beside the data, about
	cause   error         // why it is given up, set before chunks is closed
	closed  bool
	Started time.Time // when it began
	pace    snapshotPace
}

var (
	errSnapshotWrite = errors.New("the file could not be written")
	errSnapshotEnded = errors.New("it was given up")
)

// startSnapshot begins a snapshot of the keyspace and the functions as they are now. There must be none under way: Journal.Snapshot says.
// The caller holds the executor's lock.
func (j *Journal) startSnapshot(job snapshotJob) {
	cfg := j.Config.Get()
	r := &snapshotRun{
		Encoder: rdb.NewEncoder(cfg.RDBCompression), journal: j, job: job, checksum: cfg.RDBChecksum,
		chunks: make(chan []byte, snapshotChunks), spare: make(chan []byte, snapshotChunks),
		result: make(chan error, 1), Started: time.Now(),
	}
	j.Snapshot = r
	r.Begin()
	r.Aux("redis-ver", command.RedisVersion)
	r.Aux("redis-bits", "64")
	now := j.Clock.Read()
	r.Aux("ctime", fmt.Sprint(now/1e9))
	r.Aux(auxNow, fmt.Sprint(now/1e6))
	r.Aux("used-mem", fmt.Sprint(j.UsedMemory()))
	base := "0"
	if job.base {
		base = "1"
	}
	r.Aux("aof-base", base)
	switch {
	case job.sends:
		r.Aux(auxStreamDB, strconv.Itoa(job.db))
	case !job.base:
		j.writePosition(r.Encoder)
	}
	for _, lib := range j.scripts.Engine.ListLibraries() {
		r.Function([]byte(lib.Code))
	}
	extra := max(snapshotMinExtra, int(j.UsedMemory()/snapshotShare))
	r.Keys = j.Keys.Snapshot(r, extra)
	go r.writeAll()
	j.exec.Soon()
}

// Key is told a key by the store. It is between keys that bytes are handed on: long values do it after each step.
func (r *snapshotRun) Key(name []byte, expireAt int64) {
	r.hand()
	r.Encoder.Key(name, expireAt)
}

// hand gives what is encoded to the goroutine that writes, if that is worth it. It waits while too much is there to be written.
func (r *snapshotRun) hand() {
	if r.Len() >= snapshotChunk {
		r.send()
	}
}

func (r *snapshotRun) send() {
	var next []byte
	select {
	case next = <-r.spare:
	default:
	}
	r.put(r.Take(next))
}

// put gives a chunk to the goroutine, and waits while it has no room for it. Who keeps it waiting for too long is told to hurry.
func (r *snapshotRun) put(chunk []byte) {
	if r.job.hurry == nil {
		r.chunks <- chunk
		return
	}
	select {
	case r.chunks <- chunk:
		return
	default:
	}
	begun := time.Now()
	for {
		patience := time.NewTimer(snapshotHurry)
		select {
		case r.chunks <- chunk:
			patience.Stop()
			if r.waited += time.Since(begun); r.waited > snapshotWaits {
				r.waited = 0
				r.job.hurry()
			}
			return
		case <-patience.C:
			r.job.hurry()
		}
	}
}

// writeAll is the goroutine that writes.
func (r *snapshotRun) writeAll() {
	crc := uint64(0)
	var err error
	write := func(p []byte) {
		if err == nil {
			if err = r.job.write(p); err != nil {
				r.failed.Store(true)
			}
		}
	}
	for chunk := range r.chunks {
		if r.checksum {
			crc = rdb.UpdateCRC(crc, chunk)
		}
		write(chunk)
		if cap(chunk) > 2*snapshotChunk {
			continue
		}
		select {
		case r.spare <- chunk:
		default:
		}
	}
	if r.cause == nil {
		write(rdb.AppendTrailer(nil, crc))
	} else if err == nil {
		err = r.cause
	}
	r.result <- r.job.finish(err)
	r.journal.exec.Soon()
}

// snapshotPace keeps the slices of a snapshot apart while clients are served, even when none of them wants anything at the moment: without
// pauses the loop would never sleep, and the goroutine that writes, or whoever shares the processors, would be given its turns in the
// midst of requests, for milliseconds at a time. After a pause it waits for a moment in which nobody wants anything, so that requests
// that have piled up are answered first, but not for long.
type snapshotPace struct {
	served uint64    // commands, on whatever front, when it was last asked
	calm   time.Time // from when on nobody has wanted anything for long enough
	turn   time.Time // when the next slice is due while clients are served
}

// Ask reports whether a slice may begin, and how long after it, or instead of it, to ask again. served is how many commands have been
// run since the start.
func (p *snapshotPace) Ask(served uint64, now time.Time) (ok bool, again time.Duration) {
	idle := served == p.served
	if p.served = served; !idle {
		p.calm = now.Add(snapshotCalm)
	}
	if !now.Before(p.calm) {
		return true, 0
	}
	late := now.Sub(p.turn)
	switch {
	case late < 0:
		return false, -late
	case late < snapshotPatience && !idle:
		return false, 0
	}
	p.turn = now.Add(snapshotPause)
	return true, snapshotPause
}

// SnapshotSlice goes on with the snapshot for as long as background work may take, and reports when it wants to go on, in ns; 0 for
// never. It is an [exec.Job], which the server gives to the executor.
func (j *Journal) SnapshotSlice(now int64) (again int64) {
	r := j.Snapshot
	if r == nil {
		return 0
	}
	if r.closed {
		select {
		case err := <-r.result:
			j.endSnapshot(err)
			return 0
		default:
			return now + int64(exec.MaxCronPeriod) // the goroutine says when it is done
		}
	}
	start := time.Now()
	ok, pause := r.pace.Ask(j.Stats.Processed, start)
	if !ok {
		return now + int64(pause)
	}
	defer j.recorder.WatchLatencySince(observe.EventSnapshotCycle, start)
	for time.Since(start) < command.SliceTime*3/4 {
		if len(r.chunks) > snapshotAhead {
			return now + int64(snapshotFullWait)
		}
		if !r.step(snapshotStep) {
			return now
		}
	}
	return now + int64(pause)
}

// step goes on with the snapshot, and reports whether there is more of it to come.
func (r *snapshotRun) step(budget int) (more bool) {
	if r.failed.Load() {
		r.giveUp(errSnapshotWrite)
		return false
	}
	more = r.Keys.Step(budget)
	r.extra = max(r.extra, r.Keys.Extra())
	if r.Err() != nil {
		r.giveUp(r.Err())
		return false
	}
	r.hand()
	if !more {
		r.EndFile()
		r.close()
	}
	return more
}

// close tells the goroutine that there is no more.
func (r *snapshotRun) close() {
	if !r.closed {
		r.closed = true
		r.send()
		close(r.chunks)
	}
}

// giveUp ends the snapshot before its time. It is over when the goroutine has finished.
func (r *snapshotRun) giveUp(why error) {
	if r.closed {
		return
	}
	if r.job.abort != nil {
		r.job.abort()
	}
	r.Keys.Abort()
	r.cause = why
	r.close()
}

// cancelSnapshot gives up the snapshot and waits for its end. The caller holds the executor's lock.
func (j *Journal) cancelSnapshot() {
	if r := j.Snapshot; r != nil {
		r.giveUp(errSnapshotEnded)
		j.endSnapshot(<-r.result)
	}
}

// FinishSnapshot does all the rest of the snapshot and waits for its end. The caller holds the executor's lock.
func (j *Journal) FinishSnapshot() {
	r := j.Snapshot
	for !r.closed {
		r.step(snapshotSaveStep)
	}
	j.endSnapshot(<-r.result)
}

func (j *Journal) endSnapshot(err error) {
	r := j.Snapshot
	j.Snapshot = nil
	if j.Saving.Active {
		j.Saving.LastExtra = r.extra
	}
	r.job.done(err)
}
