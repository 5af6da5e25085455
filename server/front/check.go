package front

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"headgate/server/config"
)

// Check returns why a server so configured could not listen where it is to: at addresses that this machine does not have, or by socket files that
// cannot be made. What listens there now is left alone: addresses are tried with ports that are free.
func Check(cfg *config.Config) (mistakes []error) {
	for _, socket := range []struct{ path, directive string }{{cfg.UnixSocket, "unixsocket"}, {cfg.HTTPUnixSocket, "http-unixsocket"}} {
		if socket.path != "" && socket.path[0] != '@' { // the latter is in no directory
			mistakes = append(mistakes, checkUnix(cfg.Path(socket.path), socket.directive))
		}
	}
	found, err := countAddresses(cfg.Bind, max(cfg.Port, cfg.TLSPort), "--port")
	if err == nil && found == 0 && cfg.Port > 0 && cfg.TLSPort == 0 && cfg.UnixSocket == "" {
		err = noneOf(cfg.Bind)
	}
	mistakes = append(mistakes, err)
	for _, other := range []struct {
		directive string
		number    int
		bind      []string
	}{
		{"metrics-port", cfg.MetricsPort, cfg.MetricsBind},
		{"http-port", cfg.HTTPPort, cfg.HTTPBind},
		{"rls-port", cfg.RLSPort, cfg.RLSBind},
	} {
		flag := "--" + other.directive
		found, err := countAddresses(other.bind, other.number, flag)
		switch {
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("%s: %w", other.directive, err))
		case found == 0 && other.number > 0:
			mistakes = append(mistakes, fmt.Errorf("%s: this machine has none of its addresses: correct %s", other.directive, bindOf(flag)))
		}
	}
	return mistakes
}

// countAddresses returns how many of the addresses of a port this machine has; 0 if there is no such port.
func countAddresses(bind []string, port int, flag string) (int, error) {
	if port == 0 {
		return 0, nil
	}
	open, err := ListenOn(bind, 0, flag)
	closeAll(open)
	return len(open), err
}

// checkUnix returns why no socket file can be made, by making another file beside it. A socket that is there may be the one of the server that is to
// be replaced.
func checkUnix(path, directive string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		return noSocket(path, directive)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".headgate-*")
	if err != nil {
		var failed *os.PathError
		if errors.As(err, &failed) { // not by the name that it was to have here
			err = failed.Err
		}
		return unusableSocket(fmt.Errorf("%s: %w", path, err), directive)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
