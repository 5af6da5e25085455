package store

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSetStringEncodings(t *testing.T) {
	for _, tc := range []struct {
		value, encoding string
	}{
		{"", "embstr"}, {"0", "int"}, {"-1", "int"}, {"9223372036854775807", "int"}, {"9223372036854775808", "embstr"},
		{"01", "embstr"}, {"+1", "embstr"}, {"-0", "embstr"}, {" 1", "embstr"}, {"1.0", "embstr"},
		{strings.Repeat("x", 44), "embstr"}, {strings.Repeat("x", 45), "raw"}, {strings.Repeat("x", 100_000), "raw"},
	} {
		ks := New(Options{})
		db, k := ks.DB(0), testKey(ks, "key")
		db.SetString(k, []byte(tc.value), 0)
		e, ok := db.Find(k, 0)
		require.True(t, ok)
		require.Equal(t, KindString, e.Kind())
		require.Equal(t, "string", e.Kind().String())
		require.Equal(t, tc.encoding, e.Encoding(), "%.60q", tc.value)
		require.Equal(t, len(tc.value), e.StrLen())
		require.Equal(t, "> "+tc.value, string(e.AppendString([]byte("> "))))
		_, isInt := e.Int()
		require.Equal(t, tc.encoding == "int", isInt)
		ks.Close()
	}
}

// TestSetStringInPlace expects an overwrite of the same size class to leave the record where it is.
func TestSetStringInPlace(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "key")
	db.SetString(k, []byte("12345 seven"), 0)
	first, _ := db.Find(k, 0)
	db.SetString(k, []byte("12345 eight"), 0)
	second, _ := db.Find(k, 0)
	require.Equal(t, first.ref, second.ref)
	require.Equal(t, "12345 eight", string(second.Bytes(nil)))
	db.SetString(k, bytes.Repeat([]byte{'x'}, 100), 0)
	third, _ := db.Find(k, 0)
	require.NotEqual(t, first.ref, third.ref)
	checkDB(t, db, 0)
}

// TestSetStringFromAnotherKey copies a value out of the store's own memory, as COPY does.
func TestSetStringFromAnotherKey(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, from, to := ks.DB(0), testKey(ks, "from"), testKey(ks, "to")
	for _, size := range []int{3, 60, 5000, 40_000} {
		want := bytes.Repeat([]byte{'v'}, size)
		db.SetString(from, want, 0)
		for _, old := range []int{0, 10, 60, 5000, 50_000} {
			db.SetString(to, make([]byte, old), 0)
			source, _ := db.Find(from, 0)
			db.SetString(to, source.Bytes(nil), 0)
			copied, _ := db.Find(to, 0)
			require.True(t, bytes.Equal(want, copied.Bytes(nil)), "%d bytes over %d", size, old)
		}
	}
}

func TestAppendTo(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "key")
	n, err := db.AppendTo(k, 0, []byte("12"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	e, _ := db.Find(k, 0)
	require.Equal(t, "int", e.Encoding(), "a created value is encoded as any other")
	e.SetExpireAt(77)
	n, err = db.AppendTo(k, 0, []byte("3"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	e, _ = db.Find(k, 0)
	require.Equal(t, "raw", e.Encoding(), "a value appended to stays text")
	require.EqualValues(t, 77, e.ExpireAt())
	want := []byte("123")
	for len(want) < 3*maxBlock {
		part := bytes.Repeat([]byte{byte(len(want))}, 1+len(want)/3)
		want = append(want, part...)
		n, err = db.AppendTo(k, 0, part)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
	}
	e, _ = db.Find(k, 0)
	require.True(t, bytes.Equal(want, e.Bytes(nil)))
	checkDB(t, db, 0)

	other := db.create(testKey(ks, "hash"), encPackedHash)
	_, err = db.AppendTo(ks.Key(other.Name()), 0, []byte("x"))
	require.ErrorIs(t, err, ErrWrongType)
	_, err = db.SetRange(ks.Key(other.Name()), 0, 0, nil)
	require.ErrorIs(t, err, ErrWrongType)
}

// TestAppendBehindSetRange: a long string that a write in its middle has made is not copied by the next one at its end.
func TestAppendBehindSetRange(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "key")
	_, err := db.SetRange(k, 0, 1_000_000, []byte("x"))
	require.NoError(t, err)
	e, _ := db.Find(k, 0)
	before := &e.Bytes(nil)[0]
	n, err := db.AppendTo(k, 0, []byte("tail"))
	require.NoError(t, err)
	require.Equal(t, 1_000_005, n)
	e, _ = db.Find(k, 0)
	require.Same(t, before, &e.Bytes(nil)[0])
	require.Equal(t, "\x00xtail", string(e.Bytes(nil)[999_999:]))
}

func TestSetRange(t *testing.T) {
	for _, tc := range []struct {
		old    string
		offset int
		part   string
		want   string
	}{
		{"", 0, "abc", "abc"},
		{"", 2, "abc", "\x00\x00abc"},
		{"Hello World", 6, "Redis", "Hello Redis"},
		{"12345", 1, "99", "19945"},
		{"ab", 4, "c", "ab\x00\x00c"},
		{"ab", 1, "", "ab"},
		{"ab", maxBlock, "z", "ab" + strings.Repeat("\x00", maxBlock-2) + "z"},
		{strings.Repeat("x", maxBlock), 2, "ab", "xxab" + strings.Repeat("x", maxBlock-4)},
		{strings.Repeat("x", maxBlock), maxBlock + 1, "ab", strings.Repeat("x", maxBlock) + "\x00ab"},
	} {
		ks := New(Options{})
		db, k := ks.DB(0), testKey(ks, "key")
		if tc.old != "" {
			db.SetString(k, []byte(tc.old), 5)
		}
		n, err := db.SetRange(k, 0, tc.offset, []byte(tc.part))
		require.NoError(t, err)
		require.Equal(t, len(tc.want), n)
		e, ok := db.Find(k, 0)
		require.True(t, ok)
		require.True(t, tc.want == string(e.Bytes(nil)), "%.20q over %.20q at %d", tc.part, tc.old, tc.offset)
		checkDB(t, db, 0)
		ks.Close()
	}
	ks := New(Options{})
	defer ks.Close()
	n, err := ks.DB(0).SetRange(testKey(ks, "missing"), 0, 10, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, ks.DB(0).Len())
	require.Zero(t, ks.Dirty())
}

// TestSetTextKeepsDigitsAsText, over a value of each form.
func TestSetTextKeepsDigitsAsText(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "k")
	for _, before := range []string{"17", "text", string(make([]byte, maxBlock))} {
		db.SetString(k, []byte(before), 0)
		db.SetText(k, []byte("42"), 50)
		e, ok := db.Find(k, 0)
		require.True(t, ok)
		_, isInt := e.Int()
		require.False(t, isInt)
		require.Equal(t, "42", string(e.Bytes(nil)))
		require.EqualValues(t, 50, e.ExpireAt())
		checkDB(t, db, 0)
	}
}
