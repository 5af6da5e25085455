package local

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"headgate/internal/respcmd"
)

// Client runs commands within the process, as *netpoll.Inner does.
type Client interface {
	// Do runs a request's commands and returns their replies, which are valid until the next call, once whole says that none is missing.
	Do(ctx context.Context, request []byte, whole func(replies []byte) bool) ([]byte, error)
	// Open reports whether the server has not closed the connection so far.
	Open() bool
	Close()
}

// Credentials are those of a user, or zero for whoever gives none.
type Credentials struct{ User, Password string }

// Sessions are clients between their uses. Each is of one user, and used by one request at a time. They are safe for concurrent use.
type Sessions struct {
	Dial    func() Client // makes a client
	Changes func() uint64 // counts the changes of users; nil: there are none

	mu    sync.Mutex
	idle  []*Session // the one used last at the end
	ended bool
}

// Session is a client that has authenticated. It is not safe for concurrent use.
type Session struct {
	Client
	owner   [sha256.Size]byte // of the credentials: passwords are not kept
	changes uint64            // Sessions.Changes, before it authenticated

	request []byte // memory for what is asked
	awaited awaited
	whole   func(replies []byte) bool // awaited's, made once
}

func newSession(c Client, owner [sha256.Size]byte, changes uint64) *Session {
	s := &Session{Client: c, owner: owner, changes: changes}
	s.whole = s.awaited.read
	return s
}

// maxIdle is how many clients wait for their next use.
const maxIdle = 64

func ownerOf(c Credentials) (owner [sha256.Size]byte) {
	if c != (Credentials{}) {
		owner = sha256.Sum256([]byte(c.User + "\x00" + c.Password))
	}
	return owner
}

// Take returns a client of these credentials. The error is an [Error] if they are wrong. A request is answered as if it came over a connection of its
// own: a client from before a change of users is not used again, or a password that was taken back would still do.
func (s *Sessions) Take(ctx context.Context, c Credentials) (*Session, error) {
	owner, changes := ownerOf(c), s.changes()
	for {
		found := s.takeIdle(owner)
		if found == nil {
			break
		}
		if found.changes == changes && found.Open() {
			return found, nil
		}
		found.Close()
	}
	fresh := newSession(s.Dial(), owner, changes)
	if c == (Credentials{}) {
		return fresh, nil
	}
	request := respcmd.Append(nil, "AUTH", c.User, c.Password)
	answers, err := fresh.ask(ctx, request, 1)
	if err == nil && answers[0].kind == '-' {
		err = Error(answers[0].text)
	}
	if err != nil {
		fresh.Close()
		return nil, err
	}
	return fresh, nil
}

func (s *Sessions) changes() uint64 {
	if s.Changes == nil {
		return 0
	}
	return s.Changes()
}

// takeIdle returns a client that waits for its next use, or nil if there is none.
func (s *Sessions) takeIdle(owner [sha256.Size]byte) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		if found := s.idle[i]; found.owner == owner {
			s.idle = slices.Delete(s.idle, i, i+1)
			return found
		}
	}
	return nil
}

// Put keeps a client for its next use. Where there are too many the one goes that was not used for longest.
func (s *Sessions) Put(used *Session) {
	s.mu.Lock()
	over := used
	switch {
	case s.ended:
	case len(s.idle) < maxIdle:
		s.idle, over = append(s.idle, used), nil
	default:
		over = s.idle[0]
		copy(s.idle, s.idle[1:])
		s.idle[len(s.idle)-1] = used
	}
	s.mu.Unlock()
	if over != nil {
		over.Close()
	}
}

// End closes all clients. Those in use are closed when they are put back.
func (s *Sessions) End() {
	s.mu.Lock()
	all := s.idle
	s.idle, s.ended = nil, true
	s.mu.Unlock()
	for _, one := range all {
		one.Close()
	}
}

// ask runs a request and returns its n replies. After an error the session must be closed.
func (s *Session) ask(ctx context.Context, request []byte, n int) ([]reply, error) {
	s.awaited = awaited{n: n}
	if err := s.run(ctx, request); err != nil {
		return nil, err
	}
	return s.awaited.replies, nil
}

// run runs a request whose replies are awaited.
func (s *Session) run(ctx context.Context, request []byte) error {
	_, err := s.Do(ctx, request, s.whole)
	if s.awaited.err != nil {
		return s.awaited.err
	}
	return err
}
