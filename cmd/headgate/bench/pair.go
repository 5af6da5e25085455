package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// VersusRedis is the address for --vs that has both servers started for the comparison.
const VersusRedis = "redis"

// redisServer is the program that this one is compared with, as the PATH has it.
const redisServer = "redis-server"

const (
	startTimeout  = 10 * time.Second // for a server to answer
	startAttempts = 3                // a free port may be taken before the server has it
	pollEvery     = 20 * time.Millisecond
	maxStartLog   = 4 << 10 // of what a server that did not start has printed
)

// pair is this program and redis-server, started for one comparison: each on a free port of 127.0.0.1, in an empty directory, with its data
// in memory only.
type pair struct {
	dir     string
	servers []child
	addrs   []string
	pinned  func() // lets the load use every processor again
}

// child is a server's process. ended is closed when it has ended.
type child struct {
	process *os.Process
	ended   chan struct{}
}

func (c child) kill() {
	c.process.Kill()
	<-c.ended
}

// startPair starts both servers. program is the path of headgate. With two processors or more the servers share the first one, and the
// load keeps the others: they take turns, so neither disturbs the other.
func startPair(program string) (*pair, error) {
	redis, err := exec.LookPath(redisServer)
	if err != nil {
		return nil, fmt.Errorf("--vs redis needs %s on the PATH (Debian: apt-get install redis-server): %w", redisServer, err)
	}
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	p := &pair{dir: dir, pinned: func() {}}
	first, rest := splitProcessors()
	for _, path := range []string{program, redis} {
		if err := p.start(path, first); err != nil {
			p.stop()
			return nil, err
		}
	}
	p.pinned = rest.confineSelf()
	return p, nil
}

// start runs a server until it answers, on another port if that which was free is taken meanwhile.
func (p *pair) start(path string, where processors) error {
	var err error
	for range startAttempts {
		var addr string
		if addr, err = freeAddress(); err != nil {
			return err
		}
		if err = p.startAt(path, addr, where); err == nil {
			return nil
		}
	}
	return err
}

func (p *pair) startAt(path, addr string, where processors) error {
	dir, err := os.MkdirTemp(p.dir, "server-")
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(addr)
	var printed tail
	cmd := exec.Command(path, "--port", port, "--bind", host, "--dir", dir, "--save", "", "--appendonly", "no")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &printed, &printed
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "HEADGATE_") })
	apart(cmd)
	if err := where.start(cmd); err != nil {
		return err
	}
	server := child{process: cmd.Process, ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(server.ended)
	}()
	if err := awaitServer(addr, server.ended); err != nil {
		server.kill()
		return fmt.Errorf("%s did not start: %w: %s", path, err, bytes.TrimSpace(printed.text))
	}
	p.servers, p.addrs = append(p.servers, server), append(p.addrs, addr)
	return nil
}

// stop ends both servers, which have nothing to save, and removes their directories.
func (p *pair) stop() {
	p.pinned()
	for _, server := range p.servers {
		server.kill()
	}
	os.RemoveAll(p.dir)
}

// awaitServer waits until a server takes connections, or has ended.
func awaitServer(addr string, ended <-chan struct{}) error {
	deadline := time.Now().Add(startTimeout)
	for {
		conn, err := net.DialTimeout("tcp", addr, startTimeout)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return errors.New("it exited")
		case <-time.After(pollEvery):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// freeAddress is one of 127.0.0.1 on which nothing listens at this moment.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)), nil
}

// tail keeps the end of what is written to it. A server's process writes to it through one goroutine.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxStartLog):]
	return len(p), nil
}
