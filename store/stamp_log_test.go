package store

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var logRounds = flag.Int("log.rounds", 1, "how many times over the random tests of sliding logs run")

// checkBlock requires that a block holds these stamps.
func checkBlock(t *testing.T, want []stamp, b *logBlock) {
	t.Helper()
	require.Equal(t, len(want), b.len())
	require.Len(t, b.data, b.len()*b.recordBytes()+logPad)
	if len(want) > 0 {
		require.Equal(t, want[0], b.first)
	}
	for i, s := range want {
		if b.at(i) != s {
			require.Equal(t, s, b.at(i), "stamp %d", i)
		}
	}
}

// FuzzStampBlock drives a block and a slice side by side.
func FuzzStampBlock(f *testing.F) {
	f.Add([]byte("insert and cut"), uint64(1))
	f.Add([]byte{0xff, 0, 0x80, 7, 7, 7, 0xff, 1, 2, 3}, uint64(1<<53-1))
	f.Fuzz(func(t *testing.T, ops []byte, base uint64) {
		rnd := rand.New(&byteSource{bytes: ops})
		draw := func() stamp {
			s := randomStamp(rnd)
			if rnd.IntN(3) > 0 {
				s.score = min(stampMaxScore, int64(base%(1<<53))+s.score%5000)
			}
			return s
		}
		first := draw()
		b := newLogBlock(new(logOwner), first, 1+rnd.IntN(20), 1, 0)
		b.insert(0, first)
		model := []stamp{first}
		for range min(len(ops), 400) {
			switch rnd.IntN(8) {
			case 0:
				if len(model) > 1 {
					i := rnd.IntN(len(model))
					n := 1 + rnd.IntN(min(len(model)-1, len(model)-i))
					if n == len(model) {
						n--
					}
					model = slices.Delete(model, i, i+n)
					b.cut(i, n)
				}
			case 1:
				i := rnd.IntN(len(model))
				tail := b.tail(b.owner, i)
				checkBlock(t, model[i:], &tail)
				if i > 0 {
					b.cut(i, len(model)-i)
					b.join(&tail, 0)
				}
			default:
				s := draw()
				i, held := slices.BinarySearchFunc(model, s, stamp.compare)
				if held || len(model) == logBlockMax {
					continue
				}
				model = slices.Insert(model, i, s)
				b.insert(i, s)
			}
			checkBlock(t, model, &b)
		}
	})
}

// stampLogTest drives a log and a sorted slice side by side.
type stampLogTest struct {
	t     *testing.T
	rnd   *rand.Rand
	log   stampLog
	model []stamp
}

// check compares all stamps and the log's own counts.
func (l *stampLogTest) check() {
	l.t.Helper()
	total, seen := 0, l.model
	for i := range l.log.pages {
		page := &l.log.pages[i]
		count := 0
		require.NotEmpty(l.t, page.blocks)
		require.LessOrEqual(l.t, len(page.blocks), logPageMax)
		for j := range page.blocks {
			block := &page.blocks[j]
			require.Positive(l.t, block.len())
			require.LessOrEqual(l.t, block.len(), logBlockMax)
			require.LessOrEqual(l.t, block.len(), len(seen))
			require.Equal(l.t, seen[0], block.first)
			for k := range block.len() {
				if block.at(k) != seen[k] {
					require.Equal(l.t, seen[k], block.at(k))
				}
			}
			seen = seen[block.len():]
			count += block.len()
		}
		require.Equal(l.t, count, page.count)
		total += count
	}
	require.Equal(l.t, len(l.model), total)
	require.Equal(l.t, total, l.log.len())
}

func (l *stampLogTest) insert(s stamp) {
	i, held := slices.BinarySearchFunc(l.model, s, stamp.compare)
	place, found := l.log.find(s)
	if rank := l.log.rank(place); found != held || rank != i { // require costs more than all the rest here
		require.Equal(l.t, held, found, "%v", s)
		require.Equal(l.t, i, rank)
	}
	if !held {
		l.model = slices.Insert(l.model, i, s)
		l.log.insert(place, s)
	}
}

func (l *stampLogTest) remove(rank, n int) {
	l.model = slices.Delete(l.model, rank, rank+n)
	l.log.remove(rank, n)
}

// fill appends n stamps, several to a score.
func (l *stampLogTest) fill(n int) {
	score := int64(1_700_000_000_000)
	if len(l.model) > 0 {
		score = l.model[len(l.model)-1].score + 1
	}
	for n > 0 {
		run := min(n, 1+l.rnd.IntN(30))
		for i, left := 0, run; left > 0; left-- {
			s := stamp{score, uint32(i) + 1}
			l.model = append(l.model, s)
			l.log.push(s)
			i = nextAsText(i, run)
		}
		score += 1 + l.rnd.Int64N(20)
		n -= run
	}
}

// change does some random write.
func (l *stampLogTest) change() {
	n := len(l.model)
	switch l.rnd.IntN(10) {
	case 0:
		if n > 0 {
			rank := l.rnd.IntN(n)
			l.remove(rank, 1+l.rnd.IntN(min(n-rank, 1<<l.rnd.IntN(18))))
		}
	case 1:
		l.remove(0, min(n, 1<<l.rnd.IntN(14)))
	case 2:
		l.fill(1 + l.rnd.IntN(2000))
	case 3:
		k := min(n, 1<<l.rnd.IntN(8))
		l.remove(n-k, k)
	case 4:
		// Into the midst, more than a block holds.
		if n > 0 {
			s := l.model[l.rnd.IntN(n)]
			for range l.rnd.IntN(2000) {
				s.suffix++
				l.insert(s)
			}
		}
	case 5:
		for range l.rnd.IntN(100) {
			l.insert(randomStamp(l.rnd))
		}
	default:
		for range l.rnd.IntN(50) {
			if n > 0 {
				s := l.model[l.rnd.IntN(n)]
				s.score += l.rnd.Int64N(5) - 2
				if s.score >= 0 && s.score <= stampMaxSuffixed {
					l.insert(s)
				}
			}
		}
	}
}

// TestStampLog runs at sizes at which blocks and pages split and join.
func TestStampLog(t *testing.T) {
	for range *logRounds {
		testStampLog(t, newRand(t))
	}
}

func testStampLog(t *testing.T, rnd *rand.Rand) {
	l := stampLogTest{t: t, rnd: rnd, log: newStampLog()}
	l.fill(150_000)
	pages := 0
	for i := range 600 {
		l.change()
		if i%20 == 0 {
			l.check()
		}
		pages = max(pages, len(l.log.pages))
		for range 20 {
			if n := len(l.model); n > 0 {
				rank := l.rnd.IntN(n)
				place := l.log.place(rank)
				if l.log.at(place) != l.model[rank] || l.log.rank(place) != rank {
					require.Equal(t, l.model[rank], l.log.at(place))
					require.Equal(t, rank, l.log.rank(place))
				}
				if rank > 0 && l.log.at(l.log.prev(place)) != l.model[rank-1] {
					require.Equal(t, l.model[rank-1], l.log.at(l.log.prev(place)))
				}
			}
		}
	}
	require.Greater(t, pages, 3)
	l.check()
	l.remove(0, len(l.model))
	l.check()
	l.fill(10)
	l.check()
}

// TestStampLogClone: what changes in one log is not seen in its clones, nor the other way round.
func TestStampLogClone(t *testing.T) {
	rnd := newRand(t)
	logs := []*stampLogTest{{t: t, rnd: rnd, log: newStampLog()}}
	logs[0].fill(100_000)
	for range 5 {
		from := logs[rnd.IntN(len(logs))]
		logs = append(logs, &stampLogTest{t: t, rnd: rnd, log: from.log.clone(), model: slices.Clone(from.model)})
		for range 20 {
			logs[rnd.IntN(len(logs))].change()
		}
	}
	for _, l := range logs {
		l.check()
	}
}

// TestStampLogFullBlocks: a log that grows at its end or at its front only fills its blocks, whatever the order of suffixes does.
func TestStampLogFullBlocks(t *testing.T) {
	const n = 80_000
	for _, perMillisecond := range []int{1, 7, 25, 300, 5000} {
		stamps := make([]stamp, n)
		for i := range stamps {
			stamps[i] = stamp{1_700_000_000_000 + int64(i/perMillisecond), uint32(i%perMillisecond) + 1}
		}
		full := func(stamps []stamp) int {
			l := newStampLog()
			for _, s := range stamps {
				place, _ := l.find(s)
				l.insert(place, s)
			}
			blocks := 0
			for _, page := range l.pages {
				blocks += len(page.blocks)
			}
			return 100 * n / (blocks * logBlockMax)
		}
		upward := full(stamps)
		slices.SortFunc(stamps, func(a, b stamp) int { return b.compare(a) })
		downward := full(stamps)
		t.Logf("%d stamps per score: %d%% full, in descending order %d%%", perMillisecond, upward, downward)
		require.Greater(t, upward, 40)
		require.Greater(t, downward, 95)
	}
}

// TestStampLogCloneShares: a change after a clone copies the block that it is in, its page, and nothing else.
func TestStampLogCloneShares(t *testing.T) {
	l := stampLogTest{t: t, rnd: newRand(t), log: newStampLog()}
	l.fill(200_000)
	// own counts what b does not share with a, whose pages are as many.
	own := func(a, b *stampLog) (pages, blocks int) {
		held := map[*byte]bool{}
		for i := range a.pages {
			for j := range a.pages[i].blocks {
				held[&a.pages[i].blocks[j].data[0]] = true
			}
		}
		for i := range b.pages {
			if &a.pages[i].blocks[0] != &b.pages[i].blocks[0] {
				pages++
			}
			for j := range b.pages[i].blocks {
				if !held[&b.pages[i].blocks[j].data[0]] {
					blocks++
				}
			}
		}
		return pages, blocks
	}
	clone := l.log.clone()
	pages, blocks := own(&clone, &l.log)
	require.Zero(t, pages)
	require.Zero(t, blocks)
	s := l.model[100_000]
	s.suffix += 1_000_000
	l.insert(s)
	l.insert(stamp{s.score, s.suffix + 1})
	pages, blocks = own(&clone, &l.log)
	require.Equal(t, 1, pages)
	require.LessOrEqual(t, blocks, 2, "one, and another if it was full")
	l.check()
}
