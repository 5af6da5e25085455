package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var created = time.Unix(1_700_000_000, 0).UTC()

// TestSBOM reads the modules of headgate itself. (A test's binary has none noted in it.)
func TestSBOM(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "headgate")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "../../cmd/headgate").CombinedOutput()
	require.NoError(t, err, string(out))
	var first, second bytes.Buffer
	require.NoError(t, writeSBOM(&first, binary, "headgate-1.0-linux-amd64", "1.0", created))
	require.NoError(t, writeSBOM(&second, binary, "headgate-1.0-linux-amd64", "1.0", created))
	require.Equal(t, first.String(), second.String(), "the same binary gives the same bytes")
	var d spdxDocument
	require.NoError(t, json.Unmarshal(first.Bytes(), &d))
	require.Equal(t, "SPDX-2.3", d.SPDXVersion)
	require.Equal(t, "2023-11-14T22:13:20Z", d.CreationInfo.Created)
	ids := map[string]string{}
	for _, p := range d.Packages {
		require.Empty(t, ids[p.SPDXID], "two packages %s", p.SPDXID)
		require.NotEmpty(t, p.VersionInfo, p.Name)
		ids[p.SPDXID] = p.Name
	}
	require.Equal(t, "headgate", ids[mainID])
	require.Contains(t, ids, "SPDXRef-stdlib")
	require.Equal(t, "golang.org/x/sys", ids["SPDXRef-golang.org-x-sys"])
	require.Len(t, d.Relationships, len(d.Packages), "one that is described, and the others that it depends on")
	for _, r := range d.Relationships {
		require.True(t, ids[r.RelatedSPDXElement] != "", r.RelatedSPDXElement)
	}
}

// requireLayer: a layer holds the program, and a directory of the user that it runs as.
func requireLayer(t *testing.T, compressed []byte) {
	plain, err := gzip.NewReader(bytes.NewReader(compressed))
	require.NoError(t, err)
	archive := tar.NewReader(plain)
	program, err := archive.Next()
	require.NoError(t, err)
	require.Equal(t, "headgate", program.Name)
	data, err := archive.Next()
	require.NoError(t, err)
	require.Equal(t, []any{"data/", byte(tar.TypeDir), int64(0o755), "65532:65532"}, []any{data.Name, data.Typeflag, data.Mode, fmt.Sprintf("%d:%d", data.Uid, data.Gid)})
	_, err = archive.Next()
	require.Equal(t, io.EOF, err)
}

// TestImage follows an image from its index to the binary, as a container engine does, and checks every digest.
func TestImage(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	require.NoError(t, err)
	dir := t.TempDir()
	amd, arm := filepath.Join(dir, "amd64"), filepath.Join(dir, "arm64")
	require.NoError(t, os.WriteFile(amd, []byte("one program"), 0o755))
	require.NoError(t, os.WriteFile(arm, []byte("another program"), 0o755))
	var first, second bytes.Buffer
	binaries := []string{"linux/amd64=" + amd, "linux/arm64=" + arm}
	require.NoError(t, writeImage(&first, dockerfile, "1.0", "abc", created, binaries))
	require.NoError(t, writeImage(&second, dockerfile, "1.0", "abc", created, binaries))
	require.Equal(t, first.Bytes(), second.Bytes())

	files := map[string][]byte{}
	for archive := tar.NewReader(&first); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.Equal(t, created, header.ModTime.UTC())
		files[header.Name], err = io.ReadAll(archive)
		require.NoError(t, err)
	}
	require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(files["oci-layout"]))
	blob := func(d descriptor) []byte {
		content := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		sum := sha256.Sum256(content)
		require.Equal(t, d.Digest, "sha256:"+hex.EncodeToString(sum[:]))
		require.Len(t, content, d.Size)
		return content
	}
	var top, all index
	require.NoError(t, json.Unmarshal(files["index.json"], &top))
	require.Len(t, top.Manifests, 1)
	require.NoError(t, json.Unmarshal(blob(top.Manifests[0]), &all))
	require.Len(t, all.Manifests, 2)
	for _, d := range all.Manifests {
		var m manifest
		require.NoError(t, json.Unmarshal(blob(d), &m))
		require.Len(t, m.Layers, 1)
		requireLayer(t, blob(m.Layers[0]))
		var c imageConfig
		require.NoError(t, json.Unmarshal(blob(m.Config), &c))
		require.Equal(t, *d.Platform, c.platform)
		require.Equal(t, "65532:65532", c.Config.User)
		require.Equal(t, []string{`HEADGATE_BIND=* -::*`, "HEADGATE_SAVE="}, c.Config.Env)
		require.Equal(t, []string{"/headgate"}, c.Config.Entrypoint)
		require.Equal(t, map[string]struct{}{"6379/tcp": {}}, c.Config.ExposedPorts)
		require.Equal(t, &healthcheck{Test: []string{"CMD", "/headgate", "ping"}, Interval: 10 * time.Second, Timeout: 2 * time.Second, StartPeriod: 2 * time.Second}, c.Config.Healthcheck)
	}
}

func TestDockerfileThatIsNotUnderstood(t *testing.T) {
	for _, text := range []string{"", "FROM x\nVOLUME /data\n", "FROM x\nUSER", "FROM x\nHEALTHCHECK NONE\n", "FROM x\nHEALTHCHECK --retries=3 CMD [\"x\"]\n"} {
		_, err := parseDockerfile([]byte(text))
		require.Error(t, err, text)
	}
}
