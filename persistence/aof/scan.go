package aof

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"headgate/persistence"
)

// MaxSalvage is how many bytes at the end of the last file are given up at most because of damage, as opposed to a file that
// merely ends too early.
const MaxSalvage = 4 << 20

// Report is what a file of commands holds.
type Report struct {
	Size     int64 // bytes
	Whole    int64 // what stands before this offset can be loaded: whole units, and what is covered by a CRC equals it
	Flaw     *Flaw // why that is not all; nil if it is
	Commands int64 // before Whole, without the MULTI and EXEC around units of several
	NowMs    int64 // the latest time that is noted before Whole, in ms since the Unix epoch; 0 = none
	Covered  int64 // bytes before Whole that a CRC covers
	Zeros    int64 // bytes at the end that are zero, in a file with damage
	Open     int64 // from here to Whole no CRC covers anything, but for a #CRC line that may stand there; Whole if there is nothing
	Behind   bool  // what stands behind Whole may be more than a write that was interrupted: it is damaged, or whole batches follow; see Mend
	Unsealed bool  // the last batch before Whole lacks its #CRC line: cut there, the file still ends within a batch; see Mend
}

// lost is how many bytes would be given up, without the zero bytes at the end that storage may have put there.
func (r *Report) lost() int64 { return max(r.Size-r.Zeros-r.Whole, 0) }

// Salvageable reports whether the file can be used up to Whole: it ends too early, or its damage is short.
func (r *Report) Salvageable() bool {
	return r.Flaw == nil || r.Flaw.Cut || r.lost() <= MaxSalvage
}

// Cuttable reports whether a file with a flaw may be cut where it stops being whole. A base may not if its name says that it is a snapshot,
// or if nothing in it is whole: a snapshot whose first bytes are damaged looks like that, and no power cut leaves one, since a base is
// synced before the manifest names it.
func (e *Entry) Cuttable(r *Report) bool {
	ends := r.Flaw.Cut && r.Flaw.Why != whyZeros
	return e.Kind != Base || !e.isSnapshot() && (r.Whole > 0 || ends)
}

// isSnapshot reports whether the name of a base says that it is a snapshot.
func (e *Entry) isSnapshot() bool { return strings.HasSuffix(e.Name, ".rdb") }

// IsEmptied reports whether a file of so many bytes has lost what was in it: a base may be empty, but no snapshot is.
func (e *Entry) IsEmptied(size int64) bool { return e.Kind == Base && e.isSnapshot() && size == 0 }

// Emptied is what to say of a file that IsEmptied.
const Emptied = "a snapshot that is empty, which none is by itself: take it from a backup"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The annotations of this package, without their #.
const (
	tagNow = "NOW:"
	tagCRC = "CRC:"
	tagGap = "GAP"
)

// longestCRC is how many bytes of a #CRC line stand behind its tag, at most.
const longestCRC = len("01234567:9223372036854775807\r\n")

// sector is the smallest unit that storage keeps or loses as a whole, in bytes.
const sector = 512

// scan is the state of one walk through a file.
type scan struct {
	file persistence.ReadFile
	args [][]byte
	crc  uint32 // of the bytes since region

	now    mark  // what has been passed; its offset is not kept up to date
	whole  mark  // behind the last unit
	good   mark  // behind the last #CRC line that was right, or where the walk began
	batch  mark  // behind the last unit before the batch of ours that is open
	sound  mark  // behind the last unit that certainly has all of its sectors, if doubt
	region int64 // where the bytes begin that the next #CRC line should cover
	opened int64 // where the batch that is open begins

	own     bool // a batch of ours is open: its #CRC line is to come
	doubt   bool // a unit of this batch may have lost a sector, or have swallowed its #CRC line
	refuted bool // a CRC speaks against what has come since good, or since batch if own
	inMulti bool
	multiAt int64
}

// mark is a place in the file, and what stands before it.
type mark struct {
	offset, commands, nowMs, covered int64
}

// Scan reads a file of commands from offset on and reports what of it can be loaded, without loading it. The error is one of
// reading; what is wrong with the content is in the report.
func Scan(file persistence.ReadFile, offset int64) (*Report, error) {
	start := mark{offset: offset}
	s := &scan{file: file, whole: start, good: start, region: offset}
	flaw, err := s.walk(NewReader(io.NewSectionReader(file, offset, file.Size()-offset), offset))
	if err != nil {
		return nil, err
	}
	if flaw == nil {
		flaw = s.missing()
	}
	if err := s.classify(flaw); err != nil {
		return nil, err
	}
	zeros := int64(0)
	if flaw != nil && !flaw.Cut {
		if zeros, err = zerosAtEnd(file); err != nil {
			return nil, err
		}
	}
	at := s.usable(flaw)
	behind, err := s.behind(flaw, at.offset)
	if err != nil {
		return nil, err
	}
	return &Report{
		Size: file.Size(), Whole: at.offset, Flaw: flaw, Zeros: zeros, Behind: behind,
		Commands: at.commands, NowMs: at.nowMs, Covered: at.covered, Open: s.open(at),
		Unsealed: s.own && at.offset > s.opened,
	}, nil
}

// open returns from where the bytes before a mark lack a CRC.
func (s *scan) open(at mark) int64 {
	if at.offset <= s.good.offset {
		return at.offset
	}
	return s.region
}

// walk goes through the file and stops at the first flaw.
func (s *scan) walk(r *Reader) (*Flaw, error) {
	for {
		begin := r.Offset()
		args, note, err := r.Next(s.args[:0])
		if err != nil {
			return flawOf(err)
		}
		var flaw *Flaw
		if args != nil {
			s.args = args
			flaw = s.command(begin, r.Raw())
		} else {
			flaw, err = s.annotation(begin, r.Raw(), note)
		}
		if flaw != nil || err != nil {
			return flaw, err
		}
	}
}

// flawOf tells what is wrong with the content, which is nothing at its end, from what is wrong with reading it.
func flawOf(err error) (flaw *Flaw, other error) {
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case errors.As(err, &flaw):
		return flaw, nil
	}
	return nil, err
}

// The commands between which a unit of several stands.
const (
	beginsUnit = "MULTI"
	endsUnit   = "EXEC"
)

// command takes note of one whose bytes are raw.
func (s *scan) command(begin int64, raw []byte) *Flaw {
	switch name := s.args[0]; {
	case isWord(name, beginsUnit):
		if s.inMulti {
			return &Flaw{Offset: begin, Why: whyNesting}
		}
		s.inMulti, s.multiAt = true, begin
	case isWord(name, endsUnit):
		if !s.inMulti {
			return &Flaw{Offset: begin, Why: whyNesting}
		}
		s.inMulti = false
	default:
		s.now.commands++
	}
	if s.own && !s.doubt && (hasHole(begin, raw) || endsInCRC(raw)) {
		s.doubt, s.sound = true, s.whole
	}
	s.pass(begin, raw)
	return nil
}

// pass goes on behind raw.
func (s *scan) pass(begin int64, raw []byte) {
	s.crc = crc32.Update(s.crc, castagnoli, raw)
	if !s.inMulti {
		s.whole = s.now
		s.whole.offset = begin + int64(len(raw))
	}
}

// IsBracket reports whether a command of the log does nothing but begin or end a unit of several.
func IsBracket(command [][]byte) bool {
	return isWord(command[0], beginsUnit) || isWord(command[0], endsUnit)
}

// IsGap reports whether an annotation, without its #, says that changes are missing from here on: commands behind it may fail, since they were
// run on what those changes had made. The next rewrite has them, and no such annotation.
func IsGap(annotation []byte) bool { return string(annotation) == tagGap }

// isWord reports whether b is a word, in any case.
func isWord(b []byte, word string) bool {
	return len(b) == len(word) && bytes.EqualFold(b, []byte(word))
}

// hasHole reports whether a sector that ends within raw, which stands at offset begin, ends in a zero byte.
func hasHole(begin int64, raw []byte) bool {
	for i := sector - 1 - begin%sector; i < int64(len(raw)); i += sector {
		if raw[i] == 0 {
			return true
		}
	}
	return false
}

// endsInCRC reports whether the end of a command reads like a #CRC line: a length with a flipped bit may have made the line of its own batch the end
// of a value.
func endsInCRC(raw []byte) bool {
	mark := []byte("\n#" + tagCRC)
	tail := raw[max(0, len(raw)-longestCRC-len(mark)):]
	i := bytes.LastIndex(tail, mark)
	if i < 0 {
		return false
	}
	_, _, ok := parseCRC(bytes.TrimSuffix(tail[i+len(mark):], []byte("\r\n")))
	return ok
}

// annotation takes note of a line.
func (s *scan) annotation(begin int64, raw, line []byte) (*Flaw, error) {
	switch {
	case bytes.HasPrefix(line, []byte(tagNow)) && !s.inMulti:
		if !s.own {
			s.own, s.batch, s.opened = true, s.whole, begin
		}
		if ms, err := strconv.ParseInt(string(line[len(tagNow):]), 10, 64); err == nil {
			s.now.nowMs = max(s.now.nowMs, ms)
		}
		s.crc = crc32.Update(s.crc, castagnoli, raw)
		return nil, nil // and nothing is whole yet that was not
	case bytes.HasPrefix(line, []byte(tagCRC)):
		if flaw, err := s.check(begin, line[len(tagCRC):]); flaw != nil || err != nil {
			return flaw, err
		}
		s.crc, s.region, s.own, s.doubt = 0, begin, false, false
		s.pass(begin, raw)
		s.good = s.whole
		return nil, nil
	}
	s.pass(begin, raw)
	return nil, nil
}

// check compares a #CRC line, whose text is behind its tag, with the bytes before it.
func (s *scan) check(at int64, text []byte) (*Flaw, error) {
	want, n, ok := parseCRC(text)
	if !ok || n > at || s.inMulti || s.own && n < at-s.opened {
		s.refuted = true
		return &Flaw{Offset: at, Why: whyBadCRC}, nil
	}
	got := s.crc
	if n != at-s.region {
		var err error
		if got, err = sumOf(s.file, at-n, n); err != nil {
			return nil, err
		}
	}
	if got == want {
		s.now.covered += n
		return nil, nil
	}
	s.refuted = true
	s.own = s.own && n == at-s.opened // else it is not certain that the batch begins where it seems to
	return &Flaw{Offset: at - n, Why: whyCRC}, nil
}

// parseCRC reads the text of a #CRC line behind its tag, in the one form in which it is written.
func parseCRC(text []byte) (crc uint32, n int64, ok bool) {
	digits, count, found := bytes.Cut(text, []byte(":"))
	sum, err := strconv.ParseUint(string(digits), 16, 32)
	if !found || err != nil {
		return 0, 0, false
	}
	n, err = strconv.ParseInt(string(count), 10, 64)
	return uint32(sum), n, err == nil && n >= 0 && string(appendCRC(nil, uint32(sum), n)) == "#"+tagCRC+string(text)+"\r\n"
}

// appendCRC appends a #CRC line.
func appendCRC(dst []byte, crc uint32, n int64) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, "#"+tagCRC...)
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, digits[crc>>shift&15])
	}
	dst = strconv.AppendInt(append(dst, ':'), n, 10)
	return append(dst, "\r\n"...)
}

// missing returns what is missing at the end of a file in which nothing is wrong.
func (s *scan) missing() *Flaw {
	switch {
	case s.inMulti:
		return &Flaw{Offset: s.multiAt, Cut: true, Why: whyMultiCut}
	case s.own:
		return &Flaw{Offset: s.usable(nil).offset, Cut: true, Why: whyBatchCut}
	}
	return nil
}

// usable returns up to where the file can be loaded.
func (s *scan) usable(flaw *Flaw) mark {
	switch {
	case s.refuted && !s.own:
		return s.good
	case s.own && flaw != nil && !flaw.Cut:
		return s.batch // a length that is wrong may have made an earlier command seem whole
	case s.own && s.doubt:
		return s.sound
	}
	return s.whole
}

// classify looks behind a flaw. Where nothing but zero bytes follow the file ends too early; where a command only seems to be cut,
// since a #CRC line comes after its beginning, that is damage.
func (s *scan) classify(flaw *Flaw) error {
	switch {
	case flaw == nil || s.refuted:
		return nil
	case !flaw.Cut:
		zero, err := allZero(s.file, flaw.Offset)
		if zero {
			flaw.Cut, flaw.Why = true, whyZeros
		}
		return err
	case flaw.Why == whyCommandCut && s.file.Size()-flaw.Offset > MaxSalvage:
		found, err := findCRC(s.file, flaw.Offset)
		if found {
			flaw.Cut, flaw.Why = false, whyNoCommand
		}
		return err
	}
	return nil
}

// behind reports whether what is given up from an offset on may be more than a write that was interrupted. A length that is wrong may make a command in the
// middle seem cut: whole batches stand behind it then.
func (s *scan) behind(flaw *Flaw, whole int64) (bool, error) {
	switch {
	case flaw == nil || s.file.Size() == whole:
		return false, nil
	case !flaw.Cut:
		return true, nil
	case flaw.Why == whyCommandCut && s.file.Size()-flaw.Offset <= MaxSalvage: // else classify has looked
		return findCRC(s.file, flaw.Offset)
	}
	return false, nil
}

// findCRC reports whether a #CRC line begins somewhere behind offset.
func findCRC(file persistence.ReadFile, offset int64) (bool, error) {
	const overlap = maxAnnotation
	mark := []byte("\n#" + tagCRC)
	buf := make([]byte, readerBuffer)
	for at := offset; at < file.Size(); at += int64(len(buf) - overlap) {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), file.Size()-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		for rest := buf[:n]; ; {
			i := bytes.Index(rest, mark)
			if i < 0 {
				break
			}
			rest = rest[i+len(mark):]
			end := bytes.IndexByte(rest[:min(len(rest), maxAnnotation)], '\r')
			if end < 0 {
				continue
			}
			if _, _, ok := parseCRC(rest[:end]); ok {
				return true, nil
			}
		}
	}
	return false, nil
}

// sumOf returns the CRC of n bytes of a file.
func sumOf(file io.ReaderAt, at, n int64) (uint32, error) {
	crc := crc32.New(castagnoli)
	_, err := io.Copy(crc, io.NewSectionReader(file, at, n))
	return crc.Sum32(), err
}

// zerosAtEnd returns how many bytes at the end of a file are zero.
func zerosAtEnd(file persistence.ReadFile) (n int64, err error) {
	buf := make([]byte, 64<<10)
	for end := file.Size(); end > 0; {
		part := buf[:min(end, int64(len(buf)))]
		if _, err := file.ReadAt(part, end-int64(len(part))); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if rest := len(bytes.TrimRight(part, "\x00")); rest > 0 {
			return n + int64(len(part)-rest), nil
		}
		n += int64(len(part))
		end -= int64(len(part))
	}
	return n, nil
}

// allZero reports whether a file has nothing but zero bytes from offset on, and at least one.
func allZero(file persistence.ReadFile, offset int64) (bool, error) {
	r := io.NewSectionReader(file, offset, file.Size()-offset)
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			return file.Size() > offset, nil
		}
		if err != nil {
			return false, err
		}
	}
}
