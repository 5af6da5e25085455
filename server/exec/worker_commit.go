package exec

import (
	"slices"

	"headgate/server/command"
)

// answered is a client whose commands a worker has run in this batch, or that it has served in its wait, with effects being logged.
type answered struct {
	client  *command.Client
	before  int // length of its output before
	replies int
	certain bool // nothing could be written when they were run, so their replies depend on nothing that is not in the log
	served  bool // in its wait: its front may be any
	held    bool // its replies are
}

// note adds a client to those of the batch. Its replies stay here until the batch is committed: a loop sends nothing before
// that, and other fronts hold them back. The caller holds the executor's lock.
func (w *Worker) note(cl *command.Client) {
	w.noted = len(w.answered)
	w.answered = append(w.answered, answered{client: cl, before: cl.Reply.Len(), certain: w.Exec.Gate.Has(command.GateDisk)})
	if cl.Conn.FD < 0 {
		w.hold()
	}
}

// noteServed adds a client that has been served in its wait, and whose output had a length before. Its front may be another loop, which would send
// the reply at once. The caller holds the executor's lock.
func (w *Worker) noteServed(cl *command.Client, before int) {
	if !w.Exec.Effects.Logged || cl.Reply.Len() <= before {
		return
	}
	w.answered = append(w.answered, answered{client: cl, before: before, replies: 1, certain: w.Exec.Gate.Has(command.GateDisk), served: true})
	w.hold()
}

// hold has the replies of the client that was added last be held until the batch is committed.
func (w *Worker) hold() {
	a := &w.answered[len(w.answered)-1]
	a.client.Conn.Hold()
	a.held, w.holding = true, true
}

// release lets the replies of a batch go that has nothing to log.
func (w *Worker) release() {
	if w.holding {
		w.lock()
		defer w.Exec.Unlock()
	}
	w.letGo()
}

// letGo lets the replies of a batch go. The caller holds the executor's lock if some are held.
func (w *Worker) letGo() {
	if w.holding {
		for _, a := range w.answered {
			if a.held {
				a.client.Conn.Release()
			}
			if a.served {
				a.client.Conn.Wake()
			}
		}
	}
	clear(w.answered)
	w.answered, w.holding = w.answered[:0], false
}

// commit has the batch's effects logged and lets its replies go. If they cannot be logged, each reply becomes the error: a client
// learns nothing that is not in the log. A client that was served in its wait is closed: it may have been answered more since then, by its own
// front. What was run after that was known has changed nothing but for keys past their time, which is no news to anybody. The executor's lock is
// free.
func (w *Worker) commit() {
	refusal := w.Exec.above.Log.Commit()
	w.lock()
	defer w.Exec.Unlock()
	for i, a := range w.answered {
		switch {
		case refusal == "" || a.certain || w.answeredBefore(i):
		case a.served:
			a.client.Conn.CloseNow()
		default:
			a.client.Reply.Truncate(a.before)
			for range w.replies(i) {
				a.client.Reply.Error(refusal)
			}
		}
	}
	w.letGo()
	w.logged = false
}

// answeredBefore reports whether the client of w.answered[i] stands there earlier too, with replies that are not certain.
func (w *Worker) answeredBefore(i int) bool {
	return slices.ContainsFunc(w.answered[:i], func(a answered) bool { return a.client == w.answered[i].client && !a.certain })
}

// replies counts the replies of w.answered[i] and of the same client after that.
func (w *Worker) replies(i int) (n int) {
	for _, a := range w.answered[i:] {
		if a.client == w.answered[i].client {
			n += a.replies
		}
	}
	return n
}
