package fleet

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// A turnstile stands before the nodes of a cluster. Whatever is about to go to a node or to come from one passes by a function first, which may
// hold it up; a connection ends when the function says so.
type turnstile struct {
	url   string
	flags []string // that lead a gateway here

	mu   sync.Mutex
	pass func(node int, request bool, data []byte) bool
}

// chunkBytes is what passes at once.
const chunkBytes = 64 << 10

func startTurnstile(t *testing.T, cluster *harness.Cluster) *turnstile {
	t.Helper()
	ts := &turnstile{}
	var addrs []string
	for i, node := range cluster.Nodes {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		addrs = append(addrs, listener.Addr().String())
		ts.flags = append(ts.flags, "--upstream-map", node.Addr+" "+addrs[i])
		go ts.serve(listener, i, node.Addr)
	}
	ts.url = "redis://" + strings.Join(addrs, ",")
	return ts
}

// set has what passes from now on pass by a function, or by none.
func (ts *turnstile) set(pass func(node int, request bool, data []byte) bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.pass = pass
}

func (ts *turnstile) serve(listener net.Listener, node int, addr string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", addr)
		if err != nil {
			_ = client.Close()
			continue
		}
		go ts.move(client, server, node, true)
		go ts.move(server, client, node, false)
	}
}

// move lets through what comes from one side until that ends, and then ends both.
func (ts *turnstile) move(from, to net.Conn, node int, request bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	data := make([]byte, chunkBytes)
	for {
		n, err := from.Read(data)
		if err != nil {
			return
		}
		ts.mu.Lock()
		pass := ts.pass
		ts.mu.Unlock()
		if pass != nil && !pass(node, request, data[:n]) {
			return
		}
		if _, err := to.Write(data[:n]); err != nil {
			return
		}
	}
}
