package httpcheck

import (
	"context"
	"crypto/sha256"
	"sync"
)

// Client runs commands within the process, as *netpoll.Inner does.
type Client interface {
	// Do runs a request's commands and returns their replies, which are valid until the next call, once whole says that none is missing.
	Do(ctx context.Context, request []byte, whole func(replies []byte) bool) ([]byte, error)
	// Open reports whether the server has not closed the connection so far.
	Open() bool
	Close()
}

// credentials are those of a user, or zero for whoever gives none.
type credentials struct{ user, password string }

// sessions are clients between their uses. Each is of one user, and used by one request at a time.
type sessions struct {
	dial func() Client

	mu    sync.Mutex
	idle  []session // the one used last at the end
	ended bool
}

// session is a client that has authenticated.
type session struct {
	Client
	owner [sha256.Size]byte // of the credentials: passwords are not kept
}

// maxIdle is how many clients wait for their next use.
const maxIdle = 64

func ownerOf(c credentials) (owner [sha256.Size]byte) {
	if c != (credentials{}) {
		owner = sha256.Sum256([]byte(c.user + "\x00" + c.password))
	}
	return owner
}

// take returns a client of these credentials. The error is a problem.
func (s *sessions) take(ctx context.Context, c credentials) (session, error) {
	owner := ownerOf(c)
	for {
		found, ok := s.takeIdle(owner)
		if !ok {
			break
		}
		if found.Open() {
			return found, nil
		}
		found.Close() // its user has been deleted, for instance
	}
	fresh := session{s.dial(), owner}
	if c == (credentials{}) {
		return fresh, nil
	}
	request := appendBulk(appendBulk(appendBulk(appendHeader(nil, '*', 3), "AUTH"), c.user), c.password)
	answers, err := fresh.ask(ctx, request, 1)
	if err == nil && answers[0].kind == '-' {
		err = problemOf(string(answers[0].text))
	}
	if err != nil {
		fresh.Close()
		return session{}, err
	}
	return fresh, nil
}

// takeIdle returns a client that waits for its next use, if there is one.
func (s *sessions) takeIdle(owner [sha256.Size]byte) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		if found := s.idle[i]; found.owner == owner {
			copy(s.idle[i:], s.idle[i+1:])
			s.idle = s.idle[:len(s.idle)-1]
			return found, true
		}
	}
	return session{}, false
}

// put keeps a client for its next use. Where there are too many the one goes that was not used for longest.
func (s *sessions) put(used session) {
	s.mu.Lock()
	over := used
	switch {
	case s.ended:
	case len(s.idle) < maxIdle:
		s.idle, over.Client = append(s.idle, used), nil
	default:
		over = s.idle[0]
		copy(s.idle, s.idle[1:])
		s.idle[len(s.idle)-1] = used
	}
	s.mu.Unlock()
	if over.Client != nil {
		over.Close()
	}
}

// end closes all clients. Those in use are closed when they are put back.
func (s *sessions) end() {
	s.mu.Lock()
	all := s.idle
	s.idle, s.ended = nil, true
	s.mu.Unlock()
	for _, one := range all {
		one.Close()
	}
}

// ask runs a request and returns its n replies. After an error the session must be closed.
func (s session) ask(ctx context.Context, request []byte, n int) (answers []reply, err error) {
	var broken error
	_, err = s.Do(ctx, request, func(replies []byte) bool {
		var whole bool
		answers, whole, broken = readReplies(replies, n)
		return whole
	})
	switch {
	case broken != nil:
		return nil, unavailable(broken.Error())
	case err != nil:
		return nil, unavailable(err.Error())
	}
	return answers, nil
}
