// Package harness starts headgate and the reference redis-server as ordinary processes and talks to them over raw
// sockets. Every suite under tests/ stands on it.
//
// Three environment variables choose what runs:
//
//   - HEADGATE_BIN is the program under test. Without it the tree is built once into bin/headgate. Naming redis-server
//     here turns every comparison into a check that the suites themselves are deterministic.
//   - REDIS_BIN is the reference, by default redis-server on the PATH.
//   - REDIS_CLI is the client that prints transcripts, by default redis-cli on the PATH.
package harness

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const missingReference = "%s is not installed, and these tests compare with it: run `make deps`"

// Root is the directory of the repository, in which the suites' module is a folder.
func Root(t testing.TB) string {
	t.Helper()
	module := moduleRoot(t)
	keepNoResult(t, module)
	return filepath.Dir(module)
}

// moduleRoot is the directory of the suites' module: the nearest one above the working directory that holds go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, dir, parent, "no go.mod above the working directory")
		dir = parent
	}
}

// keepNoResult keeps `go test` from answering with an earlier result: it looks for changes in the test's own module only, and what the
// suites test, the program and the documents, lies outside. Of a test that has opened a file so new as this, dated ahead, it keeps none.
func keepNoResult(t testing.TB, module string) {
	t.Helper()
	path := filepath.Join(module, ".unkept")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	ahead := time.Now().Add(24 * time.Hour)
	require.NoError(t, os.Chtimes(path, ahead, ahead))
}

// Binary is the path of the program under test, built first when HEADGATE_BIN does not name one.
func Binary(t testing.TB) string {
	t.Helper()
	if named := os.Getenv("HEADGATE_BIN"); named != "" {
		path, err := exec.LookPath(named)
		require.NoError(t, err, "HEADGATE_BIN")
		abs, err := filepath.Abs(path)
		require.NoError(t, err)
		return abs
	}
	root := Root(t)
	require.NoError(t, buildOnce(root))
	return filepath.Join(root, "bin", "headgate")
}

// Reference is the path of redis-server. A test without it fails and says how to install it.
func Reference(t testing.TB) string {
	t.Helper()
	return lookTool(t, "REDIS_BIN", "redis-server")
}

// ReferenceCLI is the path of redis-cli, under the same terms as Reference.
func ReferenceCLI(t testing.TB) string {
	t.Helper()
	return lookTool(t, "REDIS_CLI", "redis-cli")
}

// SubjectIsReference reports whether the program under test is redis-server itself.
func SubjectIsReference(t testing.TB) bool {
	t.Helper()
	subject, err := filepath.EvalSymlinks(Binary(t))
	require.NoError(t, err)
	reference, err := filepath.EvalSymlinks(Reference(t))
	require.NoError(t, err)
	return subject == reference
}

func lookTool(t testing.TB, variable, name string) string {
	t.Helper()
	if named := os.Getenv(variable); named != "" {
		name = named
	}
	path, err := exec.LookPath(name)
	if err != nil {
		require.FailNowf(t, "a tool is missing", missingReference, name)
	}
	return path
}

var (
	build    sync.Once
	buildErr error
)

// buildOnce builds bin/headgate once per process. The packages of one `go test` run are processes of their own: the
// lock keeps them from writing the file at once, and the linker leaves a binary that is up to date alone.
func buildOnce(root string) error {
	build.Do(func() {
		buildErr = buildLocked(root)
	})
	return buildErr
}

func buildLocked(root string) error {
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(root, "bin", ".build.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", "bin/headgate", "./cmd/headgate")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.New("building headgate: " + err.Error() + "\n" + string(out))
	}
	return nil
}
