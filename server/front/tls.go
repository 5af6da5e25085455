package front

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/host"
)

const (
	handshakeTimeout = 5 * time.Second // a handshake that takes longer is cut off
	maxHandshakes    = 1024            // under way at a time; with one more the oldest is cut off
	leastHandshake   = time.Second / 4 // which has had this time at least: until then nobody else is accepted
	minHandshakes    = 16              // that many where descriptors are short
	handshakeShare   = 8               // handshakes may hold one descriptor in so many
	tlsFilesEvery    = time.Second     // how often the files are looked at
)

// ExpiryWarning is how soon a certificate ends that is worth a warning.
const ExpiryWarning = 14 * 24 * time.Hour

// tlsFront serves tls-port. Each connection is a goroutine that shakes hands and then a pair of them, as netFront has it. Work on
// handshakes is rationed: however many are under way, at most handshakers of them compute at a time, so that a processor is left to
// those who are connected, and the next connection is accepted only when the last one's handshake may compute.
type tlsFront struct {
	netFront
	config  atomic.Pointer[tls.Config] // for new handshakes
	compute chan struct{}              // holds one element for each handshake that computes
	Room    int                        // handshakes that may be under way
	started bool                       // Fronts.Run has begun; under mu, as all below

	mu        sync.Mutex // taken within the executor's lock, never around it
	settings  *config.Config
	files     tlsFiles // that config was made of
	broken    string   // why the files that are there now cannot be used; empty: they can
	listeners []net.Listener
	inherited []net.Listener // that stand in place of tls-port, until they are used
	foreign   bool           // listeners are those
	watching  bool
	pending   list.List // of *handshake: those under way, the oldest first

	Handshakes, Failures atomic.Uint64 // those that have succeeded, and those that have not
	Reloads, BadReloads  atomic.Uint64 // how often changed files were taken into use, and could not be
	NotAfter             atomic.Int64  // when the certificate ends, in seconds since the Unix epoch; 0: there is none
}

// handshakers is how many handshakes may compute at a time.
func handshakers() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// handshakeRoom is how many handshakes may be under way.
func handshakeRoom() int {
	return min(max(host.MaxDescriptors()/handshakeShare, minHandshakes), maxHandshakes)
}

func (f *tlsFront) init(of *Fronts, inherited []net.Listener) {
	f.inherited = inherited
	f.of, f.compute, f.Room = of, make(chan struct{}, handshakers()), handshakeRoom()
	f.pending.Init()
}

// open reads the files and listens, if the configuration has a tls-port.
func (f *tlsFront) open(cfg *config.Config) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings = cfg
	if cfg.TLSPort == 0 && len(f.inherited) > 0 {
		return errors.New("a socket for TLS is inherited, but tls-port is 0: set it, and what TLS needs")
	}
	if cfg.TLSPort == 0 {
		return nil
	}
	files := readTLSFiles(cfg)
	made, err := files.config(cfg)
	if err != nil {
		return fmt.Errorf("TLS cannot be served: %w", err)
	}
	f.use(cfg, files, made)
	return f.bind(cfg)
}

// use has new handshakes follow a configuration, made of the settings and the files. The caller holds mu.
func (f *tlsFront) use(settings *config.Config, files tlsFiles, made *tls.Config) {
	f.settings, f.files, f.broken = settings, files, ""
	f.config.Store(made)
	leaf := made.Certificates[0].Leaf
	f.NotAfter.Store(leaf.NotAfter.Unix())
	if EndsSoon(leaf.NotAfter) {
		what := "the TLS certificate expires soon"
		if time.Now().After(leaf.NotAfter) {
			what = "the TLS certificate has expired"
		}
		f.of.Logger.Warn(what, "at", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// bind opens the listeners, on which nobody accepts yet. The caller holds mu.
func (f *tlsFront) bind(cfg *config.Config) error {
	if f.ending.Load() {
		return errors.New("the server is ending")
	}
	open := f.inherited
	f.inherited = nil // once they are closed there are no others
	if f.foreign = len(open) > 0; !f.foreign {
		var err error
		if open, err = ListenOn(cfg.Bind, cfg.TLSPort, "--tls-port"); err != nil {
			return err
		}
	}
	f.listeners = open
	for _, ln := range open {
		if err := setBacklog(ln, cfg.TCPBacklog); err != nil {
			f.closeListeners()
			return err
		}
	}
	return nil
}

// start begins to accept, if there are listeners.
func (f *tlsFront) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = true
	f.acceptAll()
}

// acceptAll accepts on all listeners, once the server has started, and looks after the files. The caller holds mu.
func (f *tlsFront) acceptAll() {
	if !f.started {
		return
	}
	for _, ln := range f.listeners {
		f.conns.Go(func() { f.acceptFrom(ln, f.admit) })
	}
	if len(f.listeners) > 0 && !f.watching {
		f.watching = true
		f.conns.Go(f.watch)
	}
}

// listening returns the listeners.
func (f *tlsFront) listening() []net.Listener {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners
}

// close ends accepting, and all handshakes under way.
func (f *tlsFront) close() {
	f.ending.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeListeners()
	for e := f.pending.Front(); e != nil; e = e.Next() {
		e.Value.(*handshake).Conn.Close()
	}
}

func (f *tlsFront) closeListeners() {
	for _, ln := range f.listeners {
		ln.Close()
	}
	f.listeners = nil
}

// configChanged takes new directives into use: a port, or what the files are and how they are used. Connections that are open go on. After an
// error everything is as it was, unless the addresses that were given up for others are gone meanwhile.
func (f *tlsFront) configChanged(old, cfg *config.Config) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cfg.TLSPort == 0 {
		f.settings = cfg
		f.closeListeners()
		return nil
	}
	files := readTLSFiles(cfg)
	made, err := files.config(cfg)
	if err != nil {
		f.of.Logger.Error("the TLS configuration stays as it was", "err", err)
		return errTLSFiles
	}
	samePort := cfg.TLSPort == old.TLSPort
	if samePort && len(f.listeners) > 0 && (f.foreign || slices.Equal(cfg.Bind, old.Bind)) {
		f.use(cfg, files, made)
		return nil
	}
	previous, foreign := f.listeners, f.foreign
	if samePort {
		f.closeListeners() // they may have the addresses that are wanted
	}
	if err := f.bind(cfg); err != nil {
		f.of.Logger.Error("the TLS port stays as it was", "err", err)
		if f.listeners, f.foreign = previous, foreign; !samePort {
			return errNoPort
		}
		if err := f.bind(old); err != nil {
			f.listeners = nil
			f.of.Logger.Error("nothing listens on tls-port any more", "err", err)
		}
		f.acceptAll()
		return errNoAddresses
	}
	f.use(cfg, files, made)
	f.acceptAll()
	if !samePort {
		for _, ln := range previous {
			ln.Close()
		}
	}
	return nil
}

// tlsDirectives are those that configChanged is for.
var tlsDirectives = []string{
	"bind", "tls-auth-clients", "tls-ca-cert-dir", "tls-ca-cert-file", "tls-cert-file", "tls-ciphers", "tls-key-file", "tls-key-file-pass",
	"tls-port", "tls-protocols", "tls-session-caching",
}

// watch looks at the files until the server ends.
func (f *tlsFront) watch() {
	tick := time.NewTicker(tlsFilesEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.of.Stopping():
			return
		case <-tick.C:
			f.refresh()
		}
	}
}

// refresh uses the files anew if they have changed. Files that do not fit, such as a certificate whose key is not there yet, leave
// everything as it was; the log says so once for each reason.
func (f *tlsFront) refresh() {
	f.mu.Lock()
	settings := f.settings
	f.mu.Unlock()
	if settings.TLSPort == 0 {
		return
	}
	files := readTLSFiles(settings) // without mu: a file system may take for ever
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settings != settings { // configChanged has read the files since
		return
	}
	if files.equal(&f.files) {
		f.broken = ""
		return
	}
	made, err := files.config(settings)
	if err != nil {
		if err.Error() != f.broken {
			f.broken = err.Error()
			f.BadReloads.Add(1)
			f.of.Logger.Error("the changed TLS files cannot be used; the previous ones stay in use", "err", err)
		}
		return
	}
	f.use(settings, files, made)
	f.Reloads.Add(1)
	f.of.Logger.Info("the TLS files have changed and are in use", "cert", f.settings.TLSCertFile)
}

// admit begins a handshake on a goroutine of its own once it may compute. Each is waited for: the scheduler has no priorities, and behind
// hundreds of goroutines that want to run all clients would wait.
func (f *tlsFront) admit(raw net.Conn) {
	h := &handshake{Conn: raw, compute: f.compute, underWay: true}
	place := f.begin(h)
	h.acquire()
	f.conns.Go(func() { f.shakeHands(h, place) })
}

// shakeHands makes a TLS connection of one that came in, and serves it.
func (f *tlsFront) shakeHands(h *handshake, place *list.Element) {
	raw := h.Conn
	conn := tls.Server(h, f.config.Load())
	_ = raw.SetDeadline(h.since.Add(handshakeTimeout)) // if it cannot be set, reading will fail too
	err := conn.Handshake()
	h.end()
	f.finish(place)
	if err != nil {
		raw.Close()
		f.Failures.Add(1)
		if f.of.Logger.Enabled(context.Background(), command.LevelVerbose) {
			f.of.Logger.Log(context.Background(), command.LevelVerbose, "a TLS handshake failed", "addr", raw.RemoteAddr().String(), "err", err)
		}
		return
	}
	_ = raw.SetDeadline(time.Time{})
	f.Handshakes.Add(1)
	f.serve(conn)
}

// begin enters a handshake among those under way. Where there are too many, the oldest is cut off once it has had the least time: it has had
// the most.
func (f *tlsFront) begin(h *handshake) *list.Element {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.pending.Len() >= f.Room && !f.ending.Load() {
		oldest := f.pending.Front().Value.(*handshake)
		if wait := leastHandshake - time.Since(oldest.since); wait > 0 {
			f.mu.Unlock()
			time.Sleep(wait)
			f.mu.Lock()
			continue
		}
		oldest.Conn.Close()
		f.pending.Remove(f.pending.Front())
	}
	if f.ending.Load() {
		h.Conn.Close()
	}
	h.since = time.Now()
	return f.pending.PushBack(h)
}

func (f *tlsFront) finish(place *list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending.Remove(place) // nothing, if it was cut off
}

// EndsSoon reports whether a certificate's end is worth a warning.
func EndsSoon(notAfter time.Time) bool { return time.Until(notAfter) < ExpiryWarning }

// Certificate returns when the certificate in use ends, and why the files that are there now cannot be used, if they cannot.
func (f *tlsFront) Certificate() (until time.Time, broken string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Unix(f.NotAfter.Load(), 0), f.broken
}

// handshake is a connection during its handshake: it lets others compute while it waits for its peer. Afterwards it is as any other.
type handshake struct {
	net.Conn
	since    time.Time
	compute  chan struct{}
	underWay bool // changes before other goroutines have the connection
	holds    bool // an element of compute
}

func (h *handshake) acquire() {
	h.compute <- struct{}{}
	h.holds = true
}

func (h *handshake) release() {
	if h.holds {
		<-h.compute
		h.holds = false
	}
}

func (h *handshake) end() {
	h.release()
	h.underWay = false
}

// Read implements net.Conn.
func (h *handshake) Read(p []byte) (int, error) {
	if !h.underWay {
		return h.Conn.Read(p)
	}
	h.release()
	n, err := h.Conn.Read(p)
	if err == nil {
		h.acquire()
	}
	return n, err
}
