package aof

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
)

var (
	scanSeed = flag.Uint64("scan.seed", 0, "seed of the logs that lose sectors; 0 draws one")
	scanStep = flag.Int("scan.step", 41, "by how many bytes the sectors' ends move from log to log")
)

// written returns a log of batches that each set a few keys to random bytes, many of them zero, behind a first one of a size.
func written(t *testing.T, rnd *rand.Rand, first, batches int) []byte {
	t.Helper()
	disk := crashfs.New("/d")
	set, err := Open(Options{FS: disk, Dir: "/d/log", Name: "a"})
	require.NoError(t, err)
	l, err := set.Append()
	require.NoError(t, err)
	require.NoError(t, l.Write(appendSet(nil, make([]byte, first)), 1))
	for i := range batches {
		var batch []byte
		for range 1 + rnd.IntN(2) {
			value := make([]byte, rnd.IntN(80))
			if rnd.IntN(10) == 0 {
				value = make([]byte, rnd.IntN(2000))
			}
			for i := range value {
				value[i] = byte(rnd.IntN(3)) * byte(rnd.IntN(256))
			}
			batch = appendSet(batch, value)
		}
		require.NoError(t, l.Write(batch, int64(1_700_000_000_000+i)))
	}
	text, err := disk.ReadFile(set.Path(set.incrName(1)))
	require.NoError(t, err)
	return text
}

func appendSet(dst, value []byte) []byte {
	return fmt.Appendf(dst, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", len(value), value)
}

func scanOf(t *testing.T, text []byte) *Report {
	t.Helper()
	report, err := Scan(memory{bytes.NewReader(text)}, 0)
	require.NoError(t, err)
	return report
}

// TestScanOfLostSectors: of a log in which a sector or several are zero instead of what was written, nothing counts as whole from the
// first of them on, wherever in a batch, an annotation or a command they begin and end.
func TestScanOfLostSectors(t *testing.T) {
	seed := *scanSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-scan.seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for first := 0; first < sector; first += *scanStep {
		text := written(t, rnd, first, 60)
		for i := 0; i < len(text); i += sector {
			for _, lost := range []int{1, 1 + rnd.IntN(4)} {
				end := min(i+lost*sector, len(text))
				if len(bytes.Trim(text[i:end], "\x00")) == 0 {
					continue
				}
				changed := bytes.Clone(text)
				clear(changed[i:end])
				for _, cut := range []int{end, i + 1 + rnd.IntN(end-i), len(text)} {
					report := scanOf(t, changed[:cut])
					require.NotNil(t, report.Flaw, "first %d, sector at %d, file cut at %d", first, i, cut)
					require.LessOrEqual(t, report.Whole, int64(i), "first %d, sector at %d, file cut at %d: %v", first, i, cut, report.Flaw)
				}
			}
		}
	}
}

// TestScanOfLongZeroTail: zero bytes at the end are not counted as given up, whatever they begin in.
func TestScanOfLongZeroTail(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	text := written(t, rnd, 10, 20)
	for cut := 0; cut < len(text); cut += max(*scanStep/10, 1) {
		report := scanOf(t, append(bytes.Clone(text[:cut]), make([]byte, 2*sector)...))
		require.LessOrEqual(t, report.Whole, int64(cut))
		require.NotNil(t, report.Flaw)
		require.LessOrEqual(t, report.lost(), int64(len(text)), "cut at %d: %v", cut, report.Flaw)
	}
	for _, cut := range []int{len(text), len(text) - 1, len(text) - 5, len(text) - 20, len(text) - 60} {
		report := scanOf(t, append(bytes.Clone(text[:cut]), make([]byte, MaxSalvage+1)...))
		require.True(t, report.Salvageable(), "cut at %d: %v", cut, report.Flaw)
	}
}

// TestOnlyShortDamageIsGivenUp: what stands behind damage counts as lost, but for zeros at the end, and a long stretch of it is for people to
// decide about. A file that merely ends too early is used as far as it goes.
func TestOnlyShortDamageIsGivenUp(t *testing.T) {
	const whole = 100
	for _, tc := range []struct {
		lost, zeros int64
		flaw        *Flaw
		want        bool
	}{
		{0, 0, nil, true},
		{MaxSalvage, 0, &Flaw{}, true},
		{MaxSalvage + 1, 0, &Flaw{}, false},
		{MaxSalvage + 1, 0, &Flaw{Cut: true}, true},
		{MaxSalvage, MaxSalvage, &Flaw{}, true},
		{MaxSalvage + 1, MaxSalvage, &Flaw{}, false},
	} {
		r := Report{Size: whole + tc.lost + tc.zeros, Whole: whole, Zeros: tc.zeros, Flaw: tc.flaw}
		require.Equal(t, tc.want, r.Salvageable(), "%+v", tc)
	}
}

// TestWhichFilesMayBeCut: increments always; a base only if it is no snapshot, and if something in it is whole or its end is missing.
func TestWhichFilesMayBeCut(t *testing.T) {
	for _, c := range []struct {
		entry Entry
		whole int64
		flaw  Flaw
		want  bool
	}{
		{Entry{Kind: Incremental, Name: "a.1.incr.aof"}, 0, Flaw{}, true},
		{Entry{Kind: Base, Name: "a.1.base.rdb"}, 9, Flaw{Cut: true}, false},
		{Entry{Kind: Base, Name: "a.1.base.aof"}, 9, Flaw{}, true},
		{Entry{Kind: Base, Name: "a.1.base.aof"}, 0, Flaw{Cut: true}, true},
		{Entry{Kind: Base, Name: "a.1.base.aof"}, 0, Flaw{}, false},
		{Entry{Kind: Base, Name: "a.1.base.aof"}, 0, Flaw{Cut: true, Why: whyZeros}, false},
	} {
		require.Equal(t, c.want, c.entry.Cuttable(&Report{Whole: c.whole, Flaw: &c.flaw}), "%+v", c)
	}
}

// TestScanOfUnits: what MULTI begins ends with EXEC, and neither stands within the other or alone.
func TestScanOfUnits(t *testing.T) {
	const multi, exec, ping = "*1\r\n$5\r\nMULTI\r\n", "*1\r\n$4\r\nEXEC\r\n", "*1\r\n$4\r\nPING\r\n"
	for text, whole := range map[string]int{
		multi + ping + exec + ping: len(multi + ping + exec + ping),
		ping + exec:                len(ping),
		multi + ping + multi:       0,
		ping + multi + ping:        len(ping),
	} {
		report, err := Scan(memory{bytes.NewReader([]byte(text))}, 0)
		require.NoError(t, err)
		require.EqualValues(t, whole, report.Whole, "%q", text)
		require.Equal(t, whole == len(text), report.Flaw == nil, "%q", text)
	}
}

// TestScanOfALengthThatTakesInTheCRC: a flipped bit may make the last value so long that the #CRC line of its batch is the end of it. Such a value was
// loaded as if it were right.
func TestScanOfALengthThatTakesInTheCRC(t *testing.T) {
	const first, second = "#NOW:1\r\n*1\r\n$4\r\nPING\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n0123456789\r\n"
	right := first + fmt.Sprintf(second, 10)
	line := string(appendCRC(nil, crc32.Checksum([]byte(right), castagnoli), int64(len(right))))
	for text, whole := range map[string]int{
		right + line: len(right + line),
		first + fmt.Sprintf(second, 10+len(line)) + line: len(first),
	} {
		report := scanOf(t, []byte(text))
		require.EqualValues(t, whole, report.Whole, "%q", text)
		require.Equal(t, whole == len(text), report.Flaw == nil, "%q", text)
	}
}

// failing is a file that cannot be read any more from some read on.
type failing struct {
	memory
	reads *int // that have been tried
	from  int  // the first that fails
}

var errUnreadable = errors.New("unreadable")

// ReadAt implements io.ReaderAt.
func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if *f.reads++; *f.reads > f.from {
		return 0, errUnreadable
	}
	return f.memory.ReadAt(p, at)
}

// TestScanOfAnUnreadableFile: a file that cannot be read is not taken for one that ends there, or that is damaged, which would be cut.
func TestScanOfAnUnreadableFile(t *testing.T) {
	const ping = "*1\r\n$4\r\nPING\r\n"
	sum := func(text string) string {
		return string(appendCRC(nil, crc32.Checksum([]byte(text), castagnoli), int64(len(text))))
	}
	for name, text := range map[string]string{
		"a long command that is cut": "*2\r\n$4\r\nECHO\r\n$9000000\r\n" + strings.Repeat("x", MaxSalvage+1),
		"damage":                     ping + "damage" + strings.Repeat("\x00", 100_000),
		"zeros":                      ping + strings.Repeat("\x00", 100_000),
		"a CRC of the last command":  ping + sum(ping) + ping + sum(ping),
	} {
		t.Run(name, func(t *testing.T) {
			scan := func(from int) (reads int, err error) {
				_, err = Scan(failing{memory{bytes.NewReader([]byte(text))}, &reads, from}, 0)
				return reads, err
			}
			all, err := scan(math.MaxInt)
			require.NoError(t, err)
			require.Greater(t, all, 1)
			for from := 0; from < all; from += max(1, all/8) {
				_, err := scan(from)
				require.ErrorIs(t, err, errUnreadable, "read %d of %d", from+1, all)
			}
			_, err = scan(all - 1)
			require.ErrorIs(t, err, errUnreadable, "the last of %d reads", all)
		})
	}
}
