package rdb

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/listpack"
)

// streamNode is a listpack of entries with one field, whose IDs are given as distances from the node's.
func streamNode(distances ...[2]int64) []byte {
	var p listpack.Writer
	p.Reset()
	p.Int(int64(len(distances)))
	p.Int(0) // deleted ones
	p.Int(1) // fields
	p.Text([]byte("field"))
	p.Int(0)
	for _, d := range distances {
		before := p.Len()
		p.Int(streamSameFields)
		p.Int(d[0])
		p.Int(d[1])
		p.Text([]byte("value"))
		p.Int(int64(p.Len() - before))
	}
	return bytes.Clone(p.Bytes())
}

// TestStreamWhoseNumbersDoNotFitIsRefused: what a stream says of itself has to fit its entries, or it would take IDs a second time, or
// count below zero.
func TestStreamWhoseNumbersDoNotFitIsRefused(t *testing.T) {
	const newestMS, newestSeq = 7, 4
	for _, tc := range []struct {
		name   string
		length int
		last   StreamID
		added  uint64
		fits   bool
	}{
		{"the newest entry is the last ID", 2, StreamID{newestMS, newestSeq}, 2, true},
		{"the last ID is later in its millisecond", 2, StreamID{newestMS, newestSeq + 1}, 2, true},
		{"the last ID is of a later millisecond", 2, StreamID{newestMS + 1, 0}, 2, true},
		{"the last ID is earlier in its millisecond", 2, StreamID{newestMS, newestSeq - 1}, 2, false},
		{"the last ID is of an earlier millisecond", 2, StreamID{newestMS - 1, newestSeq + 1}, 2, false},
		{"no last ID", 2, StreamID{}, 2, false},
		{"the most entries that can have been added", 2, StreamID{newestMS, newestSeq}, math.MaxInt64, true},
		{"one more", 2, StreamID{newestMS, newestSeq}, 1 << 63, false},
		{"as many as the format holds", 2, StreamID{newestMS, newestSeq}, math.MaxUint64, false},
		{"an entry less than it says", 3, StreamID{newestMS, newestSeq}, 3, false},
		{"an entry more than it says", 1, StreamID{newestMS, newestSeq}, 2, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := NewEncoder(false)
			e.BeginPayload()
			e.Stream(1)
			e.StreamNode(StreamID{5, 3}, streamNode([2]int64{0, 0}, [2]int64{newestMS - 5, newestSeq - 3}))
			e.StreamInfo(tc.length, tc.last, StreamID{5, 3}, StreamID{}, tc.added, 0)
			e.End()
			err := readStreamValue(e)
			if tc.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "a stream whose numbers do not fit its entries")
		})
	}
}

// TestStreamWithoutEntriesMayHaveNoID: nothing is newer than its last ID.
func TestStreamWithoutEntriesMayHaveNoID(t *testing.T) {
	e := NewEncoder(false)
	e.BeginPayload()
	e.Stream(0)
	e.StreamInfo(0, StreamID{}, StreamID{}, StreamID{}, 0, 0)
	e.End()
	require.NoError(t, readStreamValue(e))
}

// TestStreamOutOfOrderIsRefused: IDs grow from entry to entry, within a node and from one to the next, and none is 0-0.
func TestStreamOutOfOrderIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		base   StreamID // of the second node, which has one entry
		first  [][2]int64
		second [2]int64
		fits   bool
	}{
		{"in order", StreamID{7, 5}, [][2]int64{{0, 0}, {0, 1}, {2, -3}, {2, 1}}, [2]int64{}, true},
		{"the second node's is the same as the first's", StreamID{5, 3}, [][2]int64{{0, 0}}, [2]int64{0, 1}, false},
		{"the second node's is below the first's", StreamID{5, 2}, [][2]int64{{0, 0}}, [2]int64{0, 4}, false},
		{"an entry below its node's", StreamID{9, 0}, [][2]int64{{0, -1}}, [2]int64{}, false},
		{"an entry of an earlier millisecond than its node's", StreamID{9, 0}, [][2]int64{{-1, 9}}, [2]int64{}, false},
		{"the same entry twice", StreamID{9, 0}, [][2]int64{{0, 0}, {0, 0}}, [2]int64{}, false},
		{"an entry before the last", StreamID{9, 0}, [][2]int64{{0, 0}, {0, 2}, {0, 1}}, [2]int64{}, false},
		{"an entry as in the node before", StreamID{7, 4}, [][2]int64{{0, 0}, {2, 1}}, [2]int64{}, false},
		{"an entry before one in the node before", StreamID{6, 9}, [][2]int64{{0, 0}, {2, 1}}, [2]int64{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := NewEncoder(false)
			e.BeginPayload()
			e.Stream(2)
			e.StreamNode(StreamID{5, 3}, streamNode(tc.first...))
			e.StreamNode(tc.base, streamNode(tc.second))
			e.StreamInfo(len(tc.first)+1, StreamID{100, 0}, StreamID{5, 3}, StreamID{}, 10, 0)
			e.End()
			if err := readStreamValue(e); tc.fits {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				require.NotContains(t, err.Error(), "numbers do not fit")
			}
		})
	}
}

// readStreamValue ends a payload and reads it.
func readStreamValue(e *Encoder) error {
	e.EndPayload()
	body, err := CheckPayload(e.Take(nil))
	if err != nil {
		return err
	}
	return ReadValue(body, &record{name: "k"})
}

// TestStreamCountsInLongForms: flags that take more bytes than they need would become shorter in the middle of the entries once they are
// written to. Of what is never written to any form is right.
func TestStreamCountsInLongForms(t *testing.T) {
	short := streamNode([2]int64{0, 0}, [2]int64{1, 0})
	offset := func(element int) int { return listpack.Pack(short).Skip(listpack.Pack(short).First(), element) }
	for element, fits := range []bool{false, false, true, true, true, false, true, true, true, true, false} {
		if element == 3 || element == 8 {
			continue // the field and a value
		}
		for _, long := range [][]byte{{0xc0, 0, 2}, {0xf1, 0, 0, 3}, {0xf2, 0, 0, 0, 4}, {0xf3, 0, 0, 0, 0, 5}, {0xf4, 0, 0, 0, 0, 0, 0, 0, 0, 9}} {
			at := offset(element)
			long[1] = short[at]
			if long[0] == 0xc0 {
				long[1], long[len(long)-2] = 0, short[at]
			}
			node := slices.Replace(bytes.Clone(short), at, at+2, long...)
			binary.LittleEndian.PutUint32(node, uint32(len(node)))
			e := NewEncoder(false)
			e.BeginPayload()
			e.Stream(1)
			e.StreamNode(StreamID{5, 3}, node)
			e.StreamInfo(2, StreamID{6, 3}, StreamID{5, 3}, StreamID{}, 2, 0)
			e.End()
			err := readStreamValue(e)
			if fits {
				require.NoError(t, err, "element %d in %d bytes", element, len(long))
			} else {
				require.ErrorContains(t, err, listpack.ErrInvalid.Error(), "element %d in %d bytes", element, len(long))
			}
		}
	}
}
