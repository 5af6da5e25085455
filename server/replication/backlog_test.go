package replication

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// noise is bytes that tell where they stand.
func noise(from, n int64) []byte {
	p := make([]byte, n)
	for i := range p {
		at := from + int64(i)
		p[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return p
}

// take reads up to n bytes.
func take(t *testing.T, r *StreamReader, n int) (all []byte) {
	t.Helper()
	for len(all) < n {
		p, err := r.Next()
		require.NoError(t, err)
		all = append(all, p...)
	}
	return all
}

func TestBacklogKeepsItsEnd(t *testing.T) {
	const begin, size = 1000, 3 * blockSize
	b := NewBacklog(begin, size)
	end := int64(begin)
	add := func(n int64) {
		b.Append(noise(end, n))
		end += n
	}
	for _, n := range []int64{1, 10, blockSize - 11, blockSize, 1, 2*blockSize + 5, 70_000, 0, 5 * blockSize} {
		add(n)
		from, to := b.Extent()
		require.Equal(t, end, to)
		require.Equal(t, max(begin, end-size), from)
		for _, at := range []int64{from, from + 1, (from + to) / 2, to - 1} {
			if at < from || at >= to {
				continue
			}
			r, ok := b.Read(at, nil)
			require.True(t, ok)
			require.True(t, bytes.Equal(noise(at, to-at), take(t, r, int(to-at))))
			r.Close()
		}
		for _, at := range []int64{from - 1, to + 1, -1} {
			_, ok := b.Read(at, nil)
			require.False(t, ok)
		}
	}
	require.LessOrEqual(t, b.Bytes(), int64(size+(2+spareBlocks)*blockSize))
	b.SetLimits(blockSize, 0)
	require.LessOrEqual(t, b.Bytes(), int64((3+spareBlocks)*blockSize))
}

// TestBacklogWaitsForItsReaders: what a reader has not had is kept, and let go of when it has, or goes.
func TestBacklogWaitsForItsReaders(t *testing.T) {
	b := NewBacklog(0, blockSize)
	r, ok := b.Read(0, nil)
	require.True(t, ok)
	b.Append(noise(0, 10*blockSize))
	require.EqualValues(t, 10*blockSize, b.Bytes())
	other, ok := r.Fork(nil)
	require.True(t, ok)
	require.True(t, bytes.Equal(noise(0, 10*blockSize), take(t, r, 10*blockSize)))
	require.EqualValues(t, 10*blockSize, b.Bytes(), "the other has had nothing")
	other.Close()
	_, err := other.Next()
	require.ErrorIs(t, err, errReaderGone)
	_, ok = other.Fork(nil)
	require.False(t, ok)
	b.Append([]byte("x"))
	require.Equal(t, []byte("x"), take(t, r, 1))
	b.Append([]byte("y"))
	require.LessOrEqual(t, b.Bytes(), int64((3+spareBlocks)*blockSize))
	r.Drain()
	require.Equal(t, []byte("y"), take(t, r, 1))
	_, err = r.Next()
	require.ErrorIs(t, err, errStreamEnd)
}

// TestBacklogEndsSlowReaders: who is behind by more than the limit is ended once, and what it holds is let go of; a limit below the size is the size.
func TestBacklogEndsSlowReaders(t *testing.T) {
	b := NewBacklog(0, blockSize)
	b.SetLimits(blockSize, 3*blockSize)
	ended := 0
	slow, _ := b.Read(0, func() { ended++ })
	quick, _ := b.Read(0, func() { t.Error("it is not slow") })
	for i := range int64(3) {
		b.Append(noise(i*blockSize, blockSize))
		take(t, quick, blockSize)
		require.Zero(t, ended)
	}
	b.Append([]byte("x"))
	b.Append([]byte("x"))
	require.Equal(t, 1, ended)
	_, err := slow.Next()
	require.ErrorIs(t, err, errSlow)
	slow.Close()
	take(t, quick, 2)
	quick.Close()
	b.SetLimits(5*blockSize, 1)
	again, _ := b.Read(b.End(), func() { ended++ })
	b.Append(noise(0, 5*blockSize))
	require.Equal(t, 1, ended)
	b.Append([]byte("x"))
	require.Equal(t, 2, ended)
	again.Close()
}

// TestBacklogThatGrows: bytes that were let go are not there again when more are to be kept.
func TestBacklogThatGrows(t *testing.T) {
	b := NewBacklog(0, 2*blockSize)
	b.Append(make([]byte, 16*blockSize))
	b.SetLimits(160*blockSize, 0)
	_, ok := b.Read(1, nil)
	require.False(t, ok)
	from, to := b.Extent()
	require.Equal(t, []int64{14 * blockSize, 16 * blockSize}, []int64{from, to})
	r, ok := b.Read(from, nil)
	require.True(t, ok)
	require.Len(t, take(t, r, 2*blockSize), 2*blockSize)
}

// TestBacklogUsesBlocksAgain: a stream that goes on allocates nothing, whether a reader is up to date, rests at a block's end or is behind.
func TestBacklogUsesBlocksAgain(t *testing.T) {
	b := NewBacklog(0, 3*blockSize)
	r, ok := b.Read(0, nil)
	require.True(t, ok)
	at := int64(0)
	p := noise(0, 1<<24) // whose bytes repeat behind that many
	pass := func(n int64) {
		b.Append(p[at : at+n])
		got, err := r.Next()
		if err != nil || !bytes.Equal(got, p[at:at+n]) {
			t.Errorf("at %d: %v", at, err)
		}
		r.mayRest()
		at += n
	}
	for range 8 {
		pass(blockSize)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { pass(blockSize) }))
	for range 4 { // what a reader who was behind had kept comes back, up to a limit
		b.Append(p[:10*blockSize])
		take(t, r, 10*blockSize)
	}
	r.mayRest()
	require.Len(t, b.spare, spareBlocks)
}

// TestEndedReadersKeepWhatTheyHave: what a reader was given stays as it is when somebody else ends it, until it asks for more: it may be sending it.
func TestEndedReadersKeepWhatTheyHave(t *testing.T) {
	for name, end := range map[string]func(b *Backlog, r *StreamReader){
		"closed":   func(_ *Backlog, r *StreamReader) { r.Close() },
		"too slow": func(b *Backlog, _ *StreamReader) { b.SetLimits(1, blockSize) },
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBacklog(0, 1)
			r, ok := b.Read(0, func() {})
			require.True(t, ok)
			b.Append(noise(0, blockSize))
			p, err := r.Next()
			require.NoError(t, err)
			end(b, r)
			for range 4 * spareBlocks {
				b.Append(make([]byte, blockSize))
			}
			require.True(t, bytes.Equal(noise(0, blockSize), p))
			require.NotEmpty(t, b.spare, "other blocks are used again")
			_, err = r.Next()
			require.Error(t, err)
		})
	}
}

// TestBacklogWithManyReaders: readers that begin and end anywhere, while the stream goes on, get what stands where they are.
func TestBacklogWithManyReaders(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b := NewBacklog(0, 2*blockSize)
	const total = 40 * blockSize
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for {
				from, to := b.Extent()
				at := from + rnd.Int64N(to-from+1)
				r, ok := b.Read(at, func() {})
				if !ok {
					continue // it has gone meanwhile
				}
				for range 1 + rnd.IntN(20) {
					p, err := r.Next()
					if err != nil || !bytes.Equal(p, noise(at, int64(len(p)))) {
						t.Errorf("at %d: %v", at, err)
						return
					}
					if at += int64(len(p)); at == total {
						r.Close()
						return
					}
				}
				r.Close()
			}
		})
	}
	rnd := rand.New(rand.NewPCG(seed, 100))
	for at := int64(0); at < total; {
		n := min(1+rnd.Int64N(9000), total-at)
		b.Append(noise(at, n))
		at += n
	}
	readers.Wait()
}

// TestRestsEnd: a rest ends when much has come, when nothing comes any more, and when its reader is too far behind.
func TestRestsEnd(t *testing.T) {
	for name, end := range map[string]func(b *Backlog, r *StreamReader){
		"much":     func(b *Backlog, _ *StreamReader) { b.Append(noise(1, restMost)) },
		"closed":   func(_ *Backlog, r *StreamReader) { r.Close() },
		"drained":  func(_ *Backlog, r *StreamReader) { r.Drain() },
		"too slow": func(b *Backlog, _ *StreamReader) { b.SetLimits(1, 100); b.Append(noise(1, 200)) },
		"a quarter": func(b *Backlog, _ *StreamReader) {
			b.SetLimits(1, 100)
			b.Append(noise(1, 20))
			b.Append(noise(21, 10))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBacklog(0, blockSize)
			r, ok := b.Read(0, func() {})
			require.True(t, ok)
			b.Append(noise(0, 1))
			take(t, r, 1)
			rested := make(chan struct{})
			go func() {
				defer close(rested)
				r.Rest(time.Hour)
			}()
			require.Eventually(t, func() bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				return r.rests
			}, 10*time.Second, time.Millisecond)
			end(b, r)
			<-rested
		})
	}
}

// TestRestsMakeNobodySlow: what a reader was given does not count against it while it rests.
func TestRestsMakeNobodySlow(t *testing.T) {
	b := NewBacklog(0, 1)
	b.SetLimits(1, 100)
	r, ok := b.Read(0, func() { t.Error("it was ended") })
	require.True(t, ok)
	for at := int64(0); at < 10*80; at += 80 {
		b.Append(noise(at, 80))
		require.Equal(t, noise(at, 80), take(t, r, 80))
		r.Rest(0)
	}
}

// resting returns a reader that has had what there is and rests, until the test's end.
func resting(t *testing.T, b *Backlog, push PushFunc) *StreamReader {
	t.Helper()
	r, ok := b.Read(b.End(), func() {})
	require.True(t, ok)
	r.SetPush(push)
	b.Append(noise(b.End(), 1))
	take(t, r, 1)
	require.True(t, r.mayRest())
	t.Cleanup(r.Close)
	return r
}

// TestPush: a reader that rests is sent what has come when it has rested long enough, or when that is much, over blocks' ends, and all of it once.
func TestPush(t *testing.T) {
	const rest = time.Millisecond
	b := NewBacklog(0, blockSize)
	var got []byte
	r := resting(t, b, func(parts [][]byte) (sent int) {
		for _, p := range parts {
			got = append(got, p...)
			sent += len(p)
		}
		return sent
	})
	now := r.from
	require.Zero(t, b.Push(now, rest), "nothing waits")
	b.Append(noise(1, 10))
	require.Equal(t, now+int64(rest), b.Push(now, rest))
	require.Empty(t, got)
	now += int64(rest)
	require.Zero(t, b.Push(now, rest))
	require.Equal(t, noise(1, 10), got)
	b.Append(noise(11, restMost))
	require.Zero(t, b.Push(now, rest), "that is much")
	require.True(t, bytes.Equal(noise(1, 10+restMost), got))
	require.EqualValues(t, b.End(), r.At())
	b.Append(noise(11+restMost, 5))
	require.Equal(t, now+int64(rest), b.Push(now, rest), "it rests again")
	require.Zero(t, b.Push(now-int64(time.Hour), rest), "the clock was set back")
	require.True(t, bytes.Equal(noise(1, 15+restMost), got))
	require.LessOrEqual(t, b.Bytes(), int64((2+spareBlocks)*blockSize), "what was sent is let go of")
	require.True(t, r.restsOn())
	require.False(t, r.restsOn(), "nothing was sent since")
}

// TestPushThatIsStuck: what cannot be sent at once is left to the reader's goroutine, whose rest ends.
func TestPushThatIsStuck(t *testing.T) {
	b := NewBacklog(0, blockSize)
	r := resting(t, b, func([][]byte) int { return 3 })
	b.Append(noise(1, 2*blockSize))
	b.Push(r.from+1, 0)
	r.Rest(time.Hour)
	require.True(t, bytes.Equal(noise(4, 2*blockSize-3), take(t, r, 2*blockSize-3)))
}

// TestReaderEndsWithinPush: what is being sent stays as it is when the reader is ended meanwhile.
func TestReaderEndsWithinPush(t *testing.T) {
	b := NewBacklog(0, 1)
	var r *StreamReader
	r = resting(t, b, func(parts [][]byte) (sent int) {
		r.Close()
		for range 4 * spareBlocks {
			b.Append(make([]byte, blockSize))
		}
		var got []byte
		for _, p := range parts {
			got = append(got, p...)
		}
		require.True(t, bytes.Equal(noise(1, 3*blockSize), got))
		return len(got)
	})
	b.Append(noise(1, 3*blockSize))
	b.Push(r.from+1, 0)
	_, err := r.Next()
	require.ErrorIs(t, err, errReaderGone)
}

// TestPushAndNext: whoever sends, and however much of it at once, the bytes come in their order, each once, and what is left over is sent at last.
func TestPushAndNext(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const total = 20 * blockSize
	b := NewBacklog(0, blockSize)
	r, ok := b.Read(0, func() {})
	require.True(t, ok)
	var at int64 // of the bytes that were sent; whoever sends has it
	check := func(p []byte) {
		if !bytes.Equal(p, noise(at, int64(len(p)))) {
			t.Errorf("wrong bytes at %d", at)
		}
		at += int64(len(p))
	}
	pushes := rand.New(rand.NewPCG(seed, 1))
	r.SetPush(func(parts [][]byte) (sent int) {
		for _, p := range parts {
			n := len(p)
			if pushes.IntN(8) == 0 {
				n = pushes.IntN(n + 1)
			}
			check(p[:n])
			if sent += n; n < len(p) {
				break
			}
		}
		return sent
	})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			p, err := r.Next()
			if err != nil {
				return
			}
			check(p)
			r.Rest(time.Microsecond)
		}
	})
	rnd := rand.New(rand.NewPCG(seed, 2))
	for end := int64(0); end < total; {
		n := min(1+rnd.Int64N(9000), total-end)
		b.Append(noise(end, n))
		end += n
		b.Push(time.Now().UnixNano(), time.Duration(rnd.IntN(100))*time.Microsecond)
	}
	r.Drain()
	reading.Wait()
	require.EqualValues(t, total, at)
}
