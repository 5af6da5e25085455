package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/listpack"
	"headgate/internal/number"
)

var (
	seedFlag  = flag.Uint64("rdb.seed", 0, "seed of the randomised tests; 0 draws one")
	flipsFlag = flag.Int("rdb.flips", 1000, "random flips of bits")
)

func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-rdb.seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// file ends a file and returns it.
func (e *Encoder) file() []byte {
	e.EndFile()
	b := e.Take(nil)
	return AppendTrailer(b, UpdateCRC(0, b))
}

func readAll(b []byte) (*record, error) {
	s := &record{}
	err := NewReader(bytes.NewReader(b), Options{}).Read(s)
	return s, err
}

func TestLZF(t *testing.T) {
	rnd := newRand(t)
	z := &lzf{}
	for range 3000 {
		src := make([]byte, compressMin+rnd.IntN(20_000))
		alphabet := 1 + rnd.IntN(255)
		for i := range src {
			src[i] = byte(rnd.IntN(alphabet))
		}
		packed, ok := z.compress([]byte("before"), src)
		if !ok {
			continue
		}
		require.LessOrEqual(t, len(packed)-6, len(src)-4)
		got, err := lzfDecompress([]byte("before"), packed[6:], len(src))
		require.NoError(t, err)
		require.Equal(t, "before"+string(src), string(got))
		_, err = lzfDecompress(nil, packed[6:], len(src)-1)
		require.ErrorIs(t, err, errLZF)
	}
}

// TestLZFSavesFourBytes or leaves the text as it is: a literal and a reference take up two bytes each.
func TestLZFSavesFourBytes(t *testing.T) {
	z := &lzf{}
	packed, ok := z.compress([]byte("before"), []byte("aaaaaaaa"))
	require.True(t, ok)
	require.Len(t, packed, len("before")+4)
	_, ok = z.compress(nil, []byte("aaaaaaa"))
	require.False(t, ok)
	_, ok = z.compress(nil, []byte("aaaaaaabcd"))
	require.False(t, ok, "the literals behind the reference count, too")
}

// writer makes files of random values, and notes what a reader must tell of them.
type writer struct {
	*Encoder
	rnd  *rand.Rand
	want record
}

func (w *writer) text() []byte {
	switch w.rnd.IntN(4) {
	case 0:
		return number.AppendInt(nil, int64(w.rnd.Uint64())>>w.rnd.IntN(64))
	case 1:
		return bytes.Repeat([]byte{byte('a' + w.rnd.IntN(26))}, w.rnd.IntN(200))
	}
	b := make([]byte, w.rnd.IntN(80))
	for i := range b {
		b[i] = byte(w.rnd.Uint32())
	}
	return b
}

// texts are up to n different texts, at least one.
func (w *writer) texts(n int) [][]byte {
	seen := map[string]bool{}
	list := [][]byte{}
	for range 1 + w.rnd.IntN(n) {
		if s := w.text(); !seen[string(s)] {
			seen[string(s)] = true
			list = append(list, s)
		}
	}
	return list
}

func (w *writer) key(i int) {
	name := fmt.Appendf(w.text(), "#%d", i)
	expireAt := int64(0)
	if w.rnd.IntN(2) == 0 {
		expireAt = 1 + w.rnd.Int64N(math.MaxInt64)
	}
	w.Key(name, expireAt)
	must(w.want.Key(name, expireAt))
	switch w.rnd.IntN(8) {
	case 0:
		n := int64(w.rnd.Uint64()) >> w.rnd.IntN(64)
		w.Int(n)
		must(w.want.Int(n))
	case 1:
		v := w.text()
		w.Text(v)
		must(w.want.Text(v))
	case 2:
		v := w.text()
		w.LongText(len(v))
		w.TextPart(v)
		w.End()
		must(w.want.Text(v))
	case 3:
		w.hash()
	case 4:
		w.zset()
	case 5:
		w.set()
	case 6:
		w.list()
	case 7:
		w.aStream()
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *writer) hash() {
	fields := w.texts(40)
	w.Hash(len(fields), w.rnd.IntN(2) == 0)
	must(w.want.Hash(0))
	for _, f := range fields {
		v := w.text()
		w.Pair(f, v)
		must(w.want.Pair(f, v))
	}
	w.End()
	must(w.want.End())
}

func (w *writer) score() float64 {
	switch w.rnd.IntN(6) {
	case 0:
		return math.Inf(1 - 2*w.rnd.IntN(2))
	case 1:
		return float64(w.rnd.IntN(1000)) / 8
	case 2:
		return float64(w.rnd.Int64())
	case 3:
		return w.rnd.NormFloat64()
	}
	return float64(w.rnd.IntN(1000) - 500)
}

func (w *writer) zset() {
	members := w.texts(40)
	w.ZSet(len(members), w.rnd.IntN(2) == 0)
	must(w.want.ZSet(0))
	for _, m := range members {
		s := w.score()
		w.Scored(m, s)
		must(w.want.Scored(m, s))
	}
	w.End()
	must(w.want.End())
}

func (w *writer) set() {
	must(w.want.Set(0))
	if w.rnd.IntN(2) == 0 {
		numbers := map[int64]bool{}
		shift := w.rnd.IntN(64)
		for range 1 + w.rnd.IntN(40) {
			numbers[int64(w.rnd.Uint64())>>shift] = true
		}
		sorted := []int64{}
		for n := range numbers {
			sorted = append(sorted, n)
		}
		sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
		w.IntSet()
		for _, n := range sorted {
			w.IntMember(n)
			must(w.want.Member(number.AppendInt(nil, n)))
		}
	} else {
		members := w.texts(40)
		w.Set(len(members))
		for _, m := range members {
			w.Member(m)
			must(w.want.Member(m))
		}
	}
	w.End()
	must(w.want.End())
}

func (w *writer) list() {
	must(w.want.List(0))
	nodes := 1 + w.rnd.IntN(4)
	w.List(0, nodes)
	for range nodes {
		for range 1 + w.rnd.IntN(5) {
			v := w.text()
			w.Element(v)
			must(w.want.Element(v))
		}
		w.EndNode()
	}
	w.End()
	must(w.want.End())
}

// node is a stream's node of entries after an ID, and their IDs, deleted ones left out.
func (w *writer) node(after StreamID) (base StreamID, b []byte, live []StreamID, highest StreamID) {
	var p listpack.Writer
	p.Reset()
	entries := 1 + w.rnd.IntN(30)
	gone := make([]bool, entries)
	deleted := 0
	for i := range entries - 1 {
		if gone[i] = w.rnd.IntN(5) == 0; gone[i] {
			deleted++
		}
	}
	fields := w.texts(4)
	p.Int(int64(entries - deleted))
	p.Int(int64(deleted))
	p.Int(int64(len(fields)))
	for _, f := range fields {
		p.Text(f)
	}
	p.Int(0)
	id := after
	for i := range entries {
		if id[1]++; w.rnd.IntN(2) == 0 {
			id = StreamID{id[0] + 1 + w.rnd.Uint64N(1000), w.rnd.Uint64N(5)}
		}
		if i == 0 {
			base = id
		}
		before := p.Len()
		flags := int64(0)
		if gone[i] {
			flags = streamDeleted
		} else {
			live = append(live, id)
		}
		own := w.texts(4)
		if w.rnd.IntN(2) == 0 {
			flags |= streamSameFields
			own = fields
		}
		p.Int(flags)
		p.Int(int64(id[0] - base[0]))
		p.Int(int64(id[1] - base[1]))
		if flags&streamSameFields == 0 {
			p.Int(int64(len(own)))
		}
		for _, f := range own {
			if flags&streamSameFields == 0 {
				p.Text(f)
			}
			p.Text(w.text())
		}
		p.Int(int64(p.Len() - before))
	}
	return base, bytes.Clone(p.Bytes()), live, id
}

func (w *writer) aStream() {
	nodes := w.rnd.IntN(4)
	w.Stream(nodes)
	must(w.want.Stream(nodes))
	var ids []StreamID
	last := StreamID{w.rnd.Uint64N(1 << 40), w.rnd.Uint64N(100)}
	for range nodes {
		base, b, live, highest := w.node(last)
		w.StreamNode(base, b)
		must(w.want.StreamNode(base, b, len(live)))
		ids, last = append(ids, live...), highest
	}
	var first StreamID
	if len(ids) > 0 {
		first = ids[0]
	}
	added, groups := uint64(len(ids))+w.rnd.Uint64N(10), w.rnd.IntN(3)
	w.StreamInfo(len(ids), last, first, StreamID{1, 1}, added, groups)
	must(w.want.StreamInfo(len(ids), last, first, StreamID{1, 1}, added))
	for i := range groups {
		w.group(fmt.Sprintf("g%d", i), ids)
	}
	w.End()
	must(w.want.End())
}

func (w *writer) group(name string, ids []StreamID) {
	ids = ids[:w.rnd.IntN(len(ids)+1)]
	read := w.rnd.Int64N(5) - 1
	w.StreamGroup(name, StreamID{1, 2}, read, len(ids), 2)
	must(w.want.StreamGroup([]byte(name), StreamID{1, 2}, read))
	for _, id := range ids {
		delivered, deliveries := w.rnd.Int64N(1<<40), w.rnd.Uint64N(4)
		w.StreamPending(id, delivered, deliveries)
		must(w.want.StreamPending(id, delivered, deliveries))
	}
	cut := w.rnd.IntN(len(ids) + 1)
	for i, own := range [][]StreamID{ids[:cut], ids[cut:]} {
		consumer, seen := fmt.Sprintf("c%d", i), w.rnd.Int64N(1<<40)
		w.StreamConsumer(consumer, seen, len(own))
		must(w.want.StreamConsumer([]byte(consumer), seen))
		for _, id := range own {
			w.StreamOwned(id)
			must(w.want.StreamOwned(id))
		}
	}
}

// randomFile is a file of n random keys and what it holds.
func randomFile(rnd *rand.Rand, n int) ([]byte, *record) {
	w := &writer{Encoder: NewEncoder(rnd.IntN(2) == 0), rnd: rnd}
	w.Begin()
	w.Aux("redis-ver", "7.2.4")
	must(w.want.Aux([]byte("redis-ver"), nil))
	w.Function([]byte("#!lua name=x"))
	must(w.want.Function([]byte("#!lua name=x")))
	for i := range n {
		if i%10 == 0 {
			w.Database(i % 7)
			w.Sizes(n, 0)
			must(w.want.Database(i % 7))
		}
		w.key(i)
	}
	return w.file(), &w.want
}

// TestRoundTrip writes random values of every type and form and reads them.
func TestRoundTrip(t *testing.T) {
	rnd := newRand(t)
	for range 60 {
		b, want := randomFile(rnd, rnd.IntN(60))
		got, err := readAll(b)
		require.NoError(t, err)
		requireSame(t, want, got)
	}
}

// requireSame compares what has been told, and shows little of it.
func requireSame(t *testing.T, want, got *record) {
	t.Helper()
	require.Len(t, got.lines, len(want.lines))
	for i, line := range want.lines {
		other := got.lines[i]
		if line == other {
			continue
		}
		at := 0
		for at < min(len(line), len(other)) && line[at] == other[at] {
			at++
		}
		from := max(0, at-60)
		require.FailNow(t, "told otherwise", "%.60s\nwant … %.160s\ngot  … %.160s", line, line[from:], other[from:])
	}
}

// TestEveryTruncation cuts a file at every byte: each is refused.
func TestEveryTruncation(t *testing.T) {
	b, _ := randomFile(newRand(t), 8)
	for n := range min(len(b), 4000) {
		_, err := readAll(b[:n])
		var located *Error
		require.ErrorAs(t, err, &located, "cut at %d of %d", n, len(b))
		require.LessOrEqual(t, located.Offset, int64(n))
		require.NotEmpty(t, located.Hint)
	}
}

// TestRandomFlips changes a bit, or two, of a file: none is loaded as if nothing had happened. Where the checksum is not compared,
// nothing worse happens than another content.
func TestRandomFlips(t *testing.T) {
	rnd := newRand(t)
	b, _ := randomFile(rnd, 8)
	for range *flipsFlag {
		damaged := bytes.Clone(b)
		for range 1 + rnd.IntN(2) {
			damaged[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		if bytes.Equal(b, damaged) {
			continue
		}
		_, err := readAll(damaged)
		require.Error(t, err)
		s := &record{}
		_ = NewReader(bytes.NewReader(damaged), Options{SkipChecksum: true}).Read(s)
	}
}

// TestRefusals holds what is refused, by a part of the error's text.
func TestRefusals(t *testing.T) {
	key := func(kind byte) string { return string([]byte{kind, 1, 'k'}) }
	tests := []struct {
		name, body, want string
		is               error
	}{
		{name: "nothing", body: "", want: "the input ends in the middle", is: ErrTruncated},
		{name: "module", body: key(typeModule) + "\x81\x7d\x26\x1c\x82\x5e\x26\x1c\x01", want: "headgate has no such type", is: ErrNoSuchType},
		{name: "module aux", body: "\xf7\x81\x7d\x26\x1c\x82\x5e\x26\x1c\x01", want: "data of the module", is: ErrNoSuchType},
		{name: "zipmap", body: key(typeHashZipmap), want: "zipmap", is: ErrNoSuchType},
		{name: "fields that expire", body: key(typeHashTTLPacked), want: "a hash with fields that expire", is: ErrNoSuchType},
		{name: "old functions", body: "\xf6", want: "release candidate", is: ErrNoSuchType},
		{name: "unknown type", body: key(60), want: "a type of value that does not exist, 60"},
		{name: "unknown mark", body: key(0xf2), want: "a type of value that does not exist, 242"},
		{name: "empty hash", body: key(typeHash) + "\x00", want: "a collection without elements"},
		{name: "empty listpack", body: key(typeHashListpack) + "\x07\x07\x00\x00\x00\x00\x00\xff", want: "a collection without elements"},
		{name: "odd listpack", body: key(typeHashListpack) + "\x09\x09\x00\x00\x00\x01\x00\x01\x01\xff", want: "a listpack that makes no sense"},
		{name: "count of a listpack", body: key(typeSetListpack) + "\x09\x09\x00\x00\x00\x02\x00\x01\x01\xff", want: "a listpack that makes no sense"},
		{name: "duplicate field", body: key(typeHash) + "\x02\x01a\x01b\x01a\x01c", want: "the same element twice", is: ErrDuplicate},
		{name: "duplicate field in a listpack", body: key(typeHashListpack) + "\x0f\x0f\x00\x00\x00\x04\x00\x01\x01\x02\x01\x01\x01\x03\x01\xff", want: "the same element twice", is: ErrDuplicate},
		{name: "duplicate member in a listpack", body: key(typeSetListpack) + "\x0b\x0b\x00\x00\x00\x02\x00\x01\x01\x01\x01\xff", want: "the same element twice", is: ErrDuplicate},
		{name: "string for a number", body: "\xfe\xc0\x01", want: "a number was to come"},
		{name: "intset out of order", body: key(typeSetIntset) + "\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x05\x00\x04\x00", want: "a set of integers"},
		{name: "NaN", body: key(typeZSet) + "\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f", want: "not a number"},
		{name: "huge string", body: key(typeString) + "\x81\x7f\xff\xff\xff\xff\xff\xff\xff", want: "the input ends in the middle", is: ErrTruncated},
		{name: "huge hash", body: key(typeHash) + "\x81\x7f\xff\xff\xff\xff\xff\xff\xff", want: "a number of elements that cannot be"},
		{name: "compressed beyond reason", body: key(typeString) + "\xc3\x04\x80\x7f\xff\xff\xff\x01\x01\x01\x01", want: "longer than its bytes can tell"},
		{name: "expiry before 1970", body: "\xfc\xff\xff\xff\xff\xff\xff\xff\xff" + key(typeString) + "\x01a", want: "an expiry before 1970"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readAll([]byte("REDIS0010" + tt.body))
			require.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			var located *Error
			require.ErrorAs(t, err, &located)
			require.NotEmpty(t, located.Hint)
		})
	}
	for _, version := range []string{"REDIS0004", "REDIS0013", "REDIS9999", "REDIS-001", "RedIS0010", "MAGIC"} {
		_, err := readAll([]byte(version + "\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
		require.Error(t, err, version)
	}
	for _, text := range []string{"h", "hello\n", "REDIT", "MAGIC"} {
		_, err := readAll([]byte(text))
		require.ErrorContains(t, err, "this is no snapshot of Redis; one begins with REDIS and four digits", "a short one ended in the middle: %q", text)
	}
	for _, text := range []string{"", "R", "REDIS", "REDIS001"} {
		_, err := readAll([]byte(text))
		require.ErrorIs(t, err, ErrTruncated, "%q", text)
	}
	for version := oldestVersion; version <= newestVersion; version++ {
		_, err := readAll(fmt.Appendf(nil, "REDIS%04d\xff\x00\x00\x00\x00\x00\x00\x00\x00", version))
		require.NoError(t, err)
	}
}

// TestSkippedMarks reads marks that mean nothing here.
func TestSkippedMarks(t *testing.T) {
	e := NewEncoder(false)
	e.Begin()
	e.buf = append(e.buf, opSlotInfo, 1, 2, 3)
	e.buf = append(e.buf, opExpire, 5, 0, 0, 0, opIdle, 9, typeString)
	e.string([]byte("idle"))
	e.string([]byte("v"))
	e.buf = append(e.buf, opFreq, 200, opExpireMs, 0, 0, 0, 0, 0, 0, 0, 0, typeString)
	e.string([]byte("freq"))
	e.string([]byte("v"))
	got, err := readAll(e.file())
	require.NoError(t, err)
	require.Equal(t, []string{`0 "idle" 5000 = "v"`, `0 "freq" 1 = "v"`}, got.lines)
}

// ziplistOf is a ziplist as Redis 6 wrote it, with every encoding of integers and strings.
func ziplistOf(elements ...string) []byte {
	b := make([]byte, ziplistHead)
	prev, last := 0, ziplistHead
	for _, s := range elements {
		last = len(b)
		if prev < ziplistBigPrev {
			b = append(b, byte(prev))
		} else {
			b = binary.LittleEndian.AppendUint32(append(b, ziplistBigPrev), uint32(prev))
		}
		n, ok := number.ParseInt([]byte(s))
		switch {
		case ok && n >= 0 && n <= 12:
			b = append(b, ziplistSmall+byte(n))
		case ok && n >= math.MinInt8 && n <= math.MaxInt8:
			b = append(b, 0xfe, byte(n))
		case ok && n >= math.MinInt16 && n <= math.MaxInt16:
			b = binary.LittleEndian.AppendUint16(append(b, 0xc0), uint16(n))
		case ok && n >= -1<<23 && n < 1<<23:
			b = append(b, 0xf0, byte(n), byte(n>>8), byte(n>>16))
		case ok && n >= math.MinInt32 && n <= math.MaxInt32:
			b = binary.LittleEndian.AppendUint32(append(b, 0xd0), uint32(n))
		case ok:
			b = binary.LittleEndian.AppendUint64(append(b, 0xe0), uint64(n))
		case len(s) < 64:
			b = append(append(b, byte(len(s))), s...)
		case len(s) < 1<<14:
			b = append(append(b, 0x40|byte(len(s)>>8), byte(len(s))), s...)
		default:
			b = append(binary.BigEndian.AppendUint32(append(b, 0x80), uint32(len(s))), s...)
		}
		prev = len(b) - last
	}
	b = append(b, 0xff)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], uint32(last))
	binary.LittleEndian.PutUint16(b[8:], uint16(len(elements)))
	return b
}

// TestOlderForms reads what Redis 6.2 and older wrote.
func TestOlderForms(t *testing.T) {
	long, longer := string(bytes.Repeat([]byte("l"), 300)), string(bytes.Repeat([]byte("m"), 20_000))
	elements := []string{"1", "-1", "12", "13", "-128", "128", "-32768", "32768", "8388607", "-8388608", "8388608", "-2147483649", "text", "", long, longer, "after", "0"}
	all := ""
	for i, e := range elements {
		if i > 0 {
			all += " "
		}
		all += fmt.Sprintf("%q", e)
	}
	e := NewEncoder(true)
	e.Begin()
	begin := func(kind byte, name string) {
		e.buf = append(e.buf, kind)
		e.string([]byte(name))
	}
	begin(typeListZiplist, "list")
	e.string(ziplistOf(elements...))
	begin(typeList, "plain")
	e.length(2)
	e.string([]byte("a"))
	e.string([]byte("5"))
	begin(typeListQuick2, "container")
	e.length(1)
	e.length(containerPlain)
	e.string([]byte("whole"))
	begin(typeListQuick, "quick")
	e.length(2)
	e.string(ziplistOf("a", "5"))
	e.string(ziplistOf("c"))
	begin(typeHashZiplist, "hash")
	e.string(ziplistOf("f", "1", "300", "v"))
	begin(typeZSetZiplist, "zset")
	e.string(ziplistOf("a", "1", "b", "2.5", "c", "inf"))
	begin(typeZSetText, "text")
	e.length(3)
	e.string([]byte("a"))
	e.buf = append(e.buf, "\x031.5"...)
	e.string([]byte("b"))
	e.buf = append(e.buf, scoreInf)
	e.string([]byte("c"))
	e.buf = append(e.buf, scoreNegInf)
	got, err := readAll(e.file())
	require.NoError(t, err)
	require.Equal(t, []string{
		`0 "list" 0 list ` + all,
		`0 "plain" 0 list "a" "5"`,
		`0 "container" 0 list "whole"`,
		`0 "quick" 0 list "a" "5" "c"`,
		`0 "hash" 0 hash "f"="1" "300"="v"`,
		`0 "zset" 0 zset "a"=0x1p+00 "b"=0x1.4p+01 "c"=+Inf`,
		`0 "text" 0 zset "a"=0x1.8p+00 "b"=+Inf "c"=-Inf`,
	}, got.lines)
}

// refusing is a sink that takes no collection.
type refusing struct{ *record }

var errRefused = errors.New("refused")

func (refusing) Hash(int) error { return errRefused }
func (refusing) Set(int) error  { return errRefused }
func (refusing) ZSet(int) error { return errRefused }

// TestRefusedCollectionsEndTheReading: what a sink says when a collection begins is heard, in the packed forms, too.
func TestRefusedCollectionsEndTheReading(t *testing.T) {
	for kind, packed := range map[byte][]byte{typeHashZiplist: ziplistOf("f", "1"), typeZSetZiplist: ziplistOf("a", "1")} {
		e := NewEncoder(true)
		e.Begin()
		e.buf = append(e.buf, kind)
		e.string([]byte("k"))
		e.string(packed)
		err := NewReader(bytes.NewReader(e.file()), Options{}).Read(refusing{&record{}})
		require.ErrorIs(t, err, errRefused)
	}
}

func TestPayload(t *testing.T) {
	e := NewEncoder(true)
	e.BeginPayload()
	e.Hash(1, true)
	e.Pair([]byte("f"), []byte("v"))
	e.End()
	e.EndPayload()
	p := e.Take(nil)
	body, err := CheckPayload(p)
	require.NoError(t, err)
	s := &record{name: "k"}
	require.NoError(t, ReadValue(body, s))
	require.Equal(t, []string{`k hash "f"="v"`}, s.lines)
	require.Error(t, ReadValue(append(bytes.Clone(body), 0), s), "more than a value")
	for n := range p {
		_, err := CheckPayload(p[:n])
		require.ErrorIs(t, err, ErrPayload)
		damaged := bytes.Clone(p)
		damaged[n] ^= 4
		_, err = CheckPayload(damaged)
		require.ErrorIs(t, err, ErrPayload)
	}
}

// slowReader gives few bytes at a time.
type slowReader struct {
	b   []byte
	rnd *rand.Rand
}

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+r.rnd.IntN(7))], r.b)
	r.b = r.b[n:]
	return n, nil
}

// TestReadingInPieces: how the bytes come makes no difference, and what follows the snapshot is left for others.
func TestReadingInPieces(t *testing.T) {
	rnd := newRand(t)
	b, want := randomFile(rnd, 40)
	r := NewReader(&slowReader{append(bytes.Clone(b), "the rest"...), rnd}, Options{})
	s := &record{}
	require.NoError(t, r.Read(s))
	requireSame(t, want, s)
	require.Equal(t, int64(len(b)), r.Offset())
	rest, err := io.ReadAll(r.Rest())
	require.NoError(t, err)
	require.Equal(t, "the rest", string(rest))
}

// TestProgressEnds: an error of Options.Progress is returned as it is.
func TestProgressEnds(t *testing.T) {
	e := NewEncoder(false)
	e.Begin()
	for i := range 100 {
		e.Key(fmt.Appendf(nil, "%d", i), 0)
		e.Text(make([]byte, 100_000))
	}
	stop := errors.New("stop")
	calls := 0
	r := NewReader(bytes.NewReader(e.file()), Options{Progress: func(offset int64) error {
		if calls++; calls == 3 {
			return stop
		}
		return nil
	}})
	require.Equal(t, stop, r.Read(&record{}))
}

// nothing is a Sink that keeps nothing.
type nothing struct{}

func (nothing) Aux(_, _ []byte) error                                      { return nil }
func (nothing) Function([]byte) error                                      { return nil }
func (nothing) Database(int) error                                         { return nil }
func (nothing) Sizes(_, _ uint64) error                                    { return nil }
func (nothing) Key([]byte, int64) error                                    { return nil }
func (nothing) Int(int64) error                                            { return nil }
func (nothing) Text([]byte) error                                          { return nil }
func (nothing) Hash(int) error                                             { return nil }
func (nothing) Pair(_, _ []byte) error                                     { return nil }
func (nothing) Set(int) error                                              { return nil }
func (nothing) Member([]byte) error                                        { return nil }
func (nothing) ZSet(int) error                                             { return nil }
func (nothing) Scored([]byte, float64) error                               { return nil }
func (nothing) List(int) error                                             { return nil }
func (nothing) Element([]byte) error                                       { return nil }
func (nothing) Stream(int) error                                           { return nil }
func (nothing) StreamNode(StreamID, []byte, int) error                     { return nil }
func (nothing) StreamInfo(int, StreamID, StreamID, StreamID, uint64) error { return nil }
func (nothing) StreamGroup([]byte, StreamID, int64) error                  { return nil }
func (nothing) StreamPending(StreamID, int64, uint64) error                { return nil }
func (nothing) StreamConsumer([]byte, int64) error                         { return nil }
func (nothing) StreamOwned(StreamID) error                                 { return nil }
func (nothing) End() error                                                 { return nil }

// TestReadingKeysAllocatesNothing: limiter keys are strings with an integer and a TTL.
func TestReadingKeysAllocatesNothing(t *testing.T) {
	e := NewEncoder(true)
	e.Begin()
	for i := range 10_000 {
		e.Key(fmt.Appendf(nil, "limiter:%d", i), 1_700_000_000_000)
		e.Int(int64(i) << 32)
	}
	b := e.file()
	allocs := testing.AllocsPerRun(5, func() { must(NewReader(bytes.NewReader(b), Options{}).Read(nothing{})) })
	require.Less(t, allocs, 30.0)
}

// allocated is the memory that fn takes, in bytes.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzRDB reads anything: no panic, and memory of at most 4 times the input, compressed strings counted as what they become, and
// 1 MiB.
func FuzzRDB(f *testing.F) {
	for i := range uint64(20) {
		b, _ := randomFile(rand.New(rand.NewPCG(i, 0)), int(i))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), Options{SkipChecksum: true})
		took := allocated(func() { _ = r.Read(nothing{}) })
		require.LessOrEqual(t, took, uint64(4*(len(b)+r.in.expanded)+1<<20))
		_ = ReadValue(b, nothing{})
		_ = ReadFunctions(b, func([]byte) error { return nil })
	})
}
