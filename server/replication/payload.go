package replication

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// markLength is the length of the bytes that end a snapshot of unknown length.
const markLength = 40

// eofPrefix announces such a snapshot, and is followed by the bytes that end it.
const eofPrefix = "$EOF:"

// payload is a snapshot that is about to come.
type payload struct {
	size int64  // in bytes; -1: it comes as it is made, and mark follows it
	mark string // of markLength bytes
}

// announced reads the line that announces a snapshot.
func (d *dialogue) announced() (p payload, err error) {
	text, err := d.lineAfterPings()
	if err != nil {
		return p, err
	}
	if mark, found := strings.CutPrefix(text, eofPrefix); found && len(mark) == markLength {
		return payload{size: -1, mark: mark}, nil
	}
	if digits, found := strings.CutPrefix(text, "$"); found {
		if p.size, err = strconv.ParseInt(digits, 10, 64); err == nil && p.size > 0 {
			return p, nil
		}
	}
	if strings.HasPrefix(text, "-") {
		return p, fmt.Errorf("the primary could make no snapshot: %q", shown(text[1:]))
	}
	return p, fmt.Errorf("the primary announces a snapshot by %q, as no Redis does", shown(text))
}

// body is the bytes of a snapshot, as they come; those of unknown length end where their format says.
func (p payload) body(in io.Reader) io.Reader {
	if p.size < 0 {
		return in
	}
	return io.LimitReader(in, p.size)
}

var errMark = errors.New("the snapshot does not end as the primary announced: the stream behind it is lost")

// behind checks that a snapshot which has been read ends where it was announced to, and returns what follows it. read is its length, and
// rest what the reader of its format has not used of body(in).
func (p payload) behind(in, rest io.Reader, read int64) (stream io.Reader, err error) {
	if p.size >= 0 {
		if read != p.size {
			return nil, errMark
		}
		return in, nil
	}
	mark := make([]byte, markLength)
	if _, err := io.ReadFull(rest, mark); err != nil {
		return nil, lost(err)
	}
	if string(mark) != p.mark {
		return nil, errMark
	}
	return rest, nil
}
