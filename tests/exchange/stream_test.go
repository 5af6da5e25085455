package exchange

import (
	"encoding/binary"
	"hash/crc64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// jones is the polynomial of the CRC behind a DUMP.
const jones = 0x95ac9329ac4bc9b5

// TestStreamFromBeforeRedis7: such streams do not say what their groups have read. headgate answered nil where Redis works it out.
func TestStreamFromBeforeRedis7(t *testing.T) {
	const streamSince7, streamBefore = 19, 15
	ours, theirs := harness.Start(t, "--enable-restore-command", "local"), harness.StartReference(t)
	a, b := harness.Dial(t, ours.Addr), harness.Dial(t, theirs.Addr)
	for _, command := range []string{
		"XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v",
		"XGROUP CREATE s at-0 0 ENTRIESREAD 0", "XGROUP CREATE s at-1 1 ENTRIESREAD 0", "XGROUP CREATE s at-2 2 ENTRIESREAD 0", "XGROUP CREATE s at-3 3 ENTRIESREAD 0", "XGROUP CREATE s at-9 9 ENTRIESREAD 0",
	} {
		require.NotContains(t, string(b.Do(strings.Fields(command)...)), "-ERR", command)
	}
	payload := []byte(b.Ask("DUMP", "s").Text)
	require.EqualValues(t, streamSince7, payload[0])
	body, version := payload[1:len(payload)-10], payload[len(payload)-10:len(payload)-8]

	// Behind the entries, each number in one byte: how many, the last ID; since 7 the first one, the last that was deleted, and how many
	// were ever added; then the groups, of which each says since 7 what it has read.
	const numbers, sinceSeven, group, read = 9, 5, 10, 7
	tail := body[len(body)-numbers-5*group:]
	require.Equal(t, "\x03\x03\x00\x01\x00\x00\x00\x03\x05", string(tail[:numbers]))
	old := append([]byte{streamBefore}, body[:len(body)-len(tail)+3]...)
	old = append(old, tail[3+sinceSeven])
	for i := range 5 {
		of := tail[numbers+i*group:][:group]
		require.Equal(t, "\x04at-", string(of[:4]))
		old = append(append(old, of[:read]...), of[read+1:]...)
	}
	old = append(old, version...)
	old = binary.LittleEndian.AppendUint64(old, ^crc64.Update(^uint64(0), crc64.MakeTable(jones), old))
	for _, c := range []*harness.Client{a, b} {
		require.Equal(t, "+OK\r\n", string(c.Do("RESTORE", "old", "0", string(old))))
	}
	for _, command := range []string{"XINFO GROUPS old", "XINFO STREAM old", "XRANGE old - +"} {
		require.Equal(t, string(b.Do(strings.Fields(command)...)), string(a.Do(strings.Fields(command)...)), command)
	}
}
