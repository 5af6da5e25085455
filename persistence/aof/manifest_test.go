package aof

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManifest: words stand between spaces or tabs, names may be quoted, and what is written is read again.
func TestManifest(t *testing.T) {
	text := "# a comment\n" +
		"file a.2.base.rdb seq 2 type b\n" +
		"file\ta.1.incr.aof\tseq 1 type h later word \n" +
		"file \"a\\\" b.3.incr.aof\"\tseq 3 type i\n" +
		"file \"a.4.incr.aof\" seq 4 type i\r\n"
	want := &Manifest{
		Base:    &Entry{Name: "a.2.base.rdb", Seq: 2, Kind: Base},
		Incr:    []Entry{{Name: "a\" b.3.incr.aof", Seq: 3, Kind: Incremental}, {Name: "a.4.incr.aof", Seq: 4, Kind: Incremental}},
		History: []Entry{{Name: "a.1.incr.aof", Seq: 1, Kind: History}},
	}
	m, err := ParseManifest([]byte(text))
	require.NoError(t, err)
	require.Equal(t, want, m)
	again, err := ParseManifest(m.Encode())
	require.NoError(t, err)
	require.Equal(t, want, again)
}

// TestManifestIsRefused names what is wrong with a manifest.
func TestManifestIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		"":                                           errManifestEmpty,
		"file a seq 1 type i":                        errManifestNoNewline,
		"file a seq 1\n":                             errManifestFormat,
		"file a seq 1 type i more\n":                 errManifestFormat,
		"file a seq 0 type i\n":                      errManifestFormat,
		"file a seq one type i\n":                    errManifestFormat,
		"file a seq 1 type x\n":                      errManifestFormat,
		"file \"\" seq 1 type i\n":                   errManifestPath,
		"file \"a\"x seq 1 type i\n":                 errManifestFormat,
		"file \"a seq 1 type i\n":                    errManifestFormat,
		"file ../a seq 1 type i\n":                   errManifestPath,
		"file a seq 1 type b\nfile b seq 2 type b\n": errManifestBases,
		"file a seq 2 type i\nfile b seq 2 type i\n": errManifestSequence,
	} {
		_, err := ParseManifest([]byte(text))
		require.ErrorIs(t, err, want, "%q", text)
	}
}
