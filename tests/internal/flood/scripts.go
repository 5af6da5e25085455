package flood

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"strconv"
	"time"
)

// Pauses that are asked beside scripts.
const (
	besideSteps  = 20 * time.Millisecond
	besideTables = 300 * time.Millisecond
	// besideArray is twice what the script takes that makes 100,000 elements: gopher-lua keeps those above limits.ArrayMax in a map, at ten
	// times what C Lua needs, and a script that has begun is not interrupted.
	besideArray = 200 * time.Millisecond
)

// besideData is how much garbage may pile up beside the elements: nothing is collected on a script's behalf, and the collector comes when
// there is as much garbage as data, and more while it is at work.
func besideData(size Size) int64 { return int64(size.of(256, 768)) * mib }

// ownsFor is how long those that wait for what never comes do so.
const ownsFor = 500 * time.Millisecond

// scripts run beside much data, or take much themselves.
var scripts = []Flood{
	{
		Name: "script-steps", Setup: elements, Conns: same(1), Attack: again("EVAL", "local n = 0 for i = 1, 3000 do n = n + #tostring(i) end return n", "0"),
		Memory: besideData, Pause: besideSteps,
	},
	{
		Name: "script-tables", Long: true, Setup: elements, Conns: same(1), Attack: again("EVAL", "for i = 1, 2000000 do local t = {i} end", "0"),
		Memory: besideData, Pause: besideTables,
	},
	{
		Name: "script-values", Long: true, Conns: same(2), Attack: again("EVAL", "local t = {} for i = 1, 100000 do t[i] = 'value ' .. i end return #t", "0"),
		Memory: bytes(512 * mib),
	},
	{
		Name: "script-reply", Long: true, Conns: same(5), Attack: again("EVAL", "local t = {} for i = 1, 100000 do t[i] = i end return t", "0"),
		Memory: bytes(512 * mib), Pause: besideArray,
	},
	{
		Name: "cjson", Long: true, Conns: same(1), Attack: again("EVAL", "local s = string.rep('x', 1000000) local t = {} for i = 1, 100 do t[i] = s end return #cjson.encode(t)", "0"),
		Memory: bytes(512 * mib),
	},
	{
		Name: "restore", Long: true, Factor: 2, Own: []string{"--enable-restore-command", "local"}, Conns: same(1), Attack: restoreBomb,
		Memory: func(s Size) int64 { return int64(s.of(512, 1024)) * mib }, // of the whole one, twice what redis-server takes for one
	},
}

// elements are two million in a hash.
func elements(do Do, size Size) error {
	const atOnce = 5_000
	for i := 0; i < size.of(20_000, 2_000_000); i += atOnce {
		args := []string{"HSET", "elements"}
		for j := range atOnce {
			args = append(args, fmt.Sprintf("field:%08d", i+j), strconv.Itoa(i+j))
		}
		if _, err := do(args...); err != nil {
			return err
		}
	}
	return nil
}

// again asks the same, waiting for each answer.
func again(args ...string) func(*Conn, Size) error {
	return func(c *Conn, _ Size) error {
		for {
			if _, err := c.ask(args...); err != nil {
				return err
			}
		}
	}
}

const (
	shortBomb = 100_000_000 // bytes that a value has when it is unpacked
	bombBytes = 400_000_000
	maxMatch  = 264 // bytes that LZF repeats at a time
)

// restoreBomb restores a value that has been packed well.
func restoreBomb(c *Conn, size Size) error {
	bomb := bomb(size.of(shortBomb, bombBytes))
	for {
		if _, err := c.ask("RESTORE", "bomb", "0", string(bomb), "REPLACE"); err != nil {
			return err
		}
	}
}

// bomb is what DUMP would give for a string of n zeros, of which LZF makes an 88th.
func bomb(n int) []byte {
	packed := []byte{0, 0} // one byte as it is,
	left := n - 1
	for ; left >= maxMatch; left -= maxMatch {
		packed = append(packed, 7<<5, maxMatch-9, 0) // which is repeated again and again,
	}
	for ; left > 0; left-- {
		packed = append(packed, 0, 0) // and the rest as it is
	}
	const lzfString, long, version = 0xc3, 0x80, 10
	out := []byte{0, lzfString}
	for _, length := range []int{len(packed), n} {
		out = binary.BigEndian.AppendUint32(append(out, long), uint32(length))
	}
	out = binary.LittleEndian.AppendUint16(append(out, packed...), version)
	// Jones' polynomial, as Redis has it: without the inversions that Go adds at both ends.
	sum := ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), out)
	return binary.LittleEndian.AppendUint64(out, sum)
}
