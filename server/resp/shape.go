package resp

const (
	shapeBytes = 512 // of the longest command that a Shape takes up
	shapeArgs  = 16  // arguments of it, at most
	learnAfter = 2   // commands in a row that are not of the shape, and the last of them takes its place
	pauseAfter = 8   // the same, and nothing is compared for a while: loads that never repeat are not to pay for it
	pauseFor   = 64  // so many commands
)

// Shape is a command that was read, and recognises those that are the same but for their first argument: the key. Commands that follow
// one another are mostly like that, over one connection or over many, and comparing them costs less than parsing them. The zero value
// recognises none. It is not safe for concurrent use.
type Shape struct {
	number uint64
	missed int     // commands in a row that were not of the shape
	pause  int     // commands that are not compared
	limits *Limits // that the command was within

	frame    [shapeBytes]byte
	headSize int  // of frame, up to the dollar sign of the key's length, or all of it
	keyed    bool // there is a key
	tailSize int  // of frame behind the head, from the key's end on
	count    int  // arguments
	name     span
	rest     [shapeArgs]span // the arguments behind the key, counted from the key's end
}

// span is where an argument is.
type span struct{ from, to uint16 }

// Number tells this shape from all others that the same Shape has had; it is not 0 once Repeat has recognised a command.
func (s *Shape) Number() uint64 { return s.number }

// Repeat is Next for a complete command of the shape. It reports false, and has done nothing, if that is not what comes next, or if
// args has no room left.
func (r *Reader) Repeat(s *Shape, args [][]byte, lim *Limits) (out [][]byte, ok bool) {
	if s.pause > 0 || s.limits != lim || r.state != atStart || cap(args)-len(args) < s.count {
		return args, false
	}
	b := r.buf[r.next:r.end]
	head := s.frame[:s.headSize]
	if len(b) < len(head) || string(b[:len(head)]) != string(head) {
		return args, false
	}
	out = args[:len(args)+s.count]
	own := out[len(args):]
	own[0] = b[s.name.from:s.name.to:s.name.to]
	size := len(head)
	if s.keyed {
		tail := s.frame[len(head):][:s.tailSize]
		length, start := header(b, size-1)
		if start == 0 || length > lim.Bulk || length > len(b)-start-len(tail) {
			return args, false
		}
		end := start + length
		if string(b[end:end+len(tail)]) != string(tail) {
			return args, false
		}
		own[1] = b[start:end:end]
		size = end + len(tail)
		b = b[end:size]
		for i := range own[2:] {
			at := s.rest[i]
			own[2+i] = b[at.from:at.to:at.to]
		}
	}
	if size > lim.Query {
		return args, false
	}
	r.next += size
	s.missed = 0
	return out, true
}

// Learn is to be told of each command that Next has returned because Repeat did not: args are its arguments, and from is what Offset was
// before. It reports whether the Shape is that of this command from now on.
func (r *Reader) Learn(s *Shape, from int, args [][]byte, lim *Limits) bool {
	if s.pause > 0 {
		s.pause--
		return false
	}
	s.missed++
	if s.missed == pauseAfter {
		s.missed, s.pause = 0, pauseFor
	}
	frame := r.buf[from:r.next]
	if s.missed%learnAfter != 0 || len(frame) > shapeBytes || len(args) > shapeArgs || lim.unauthenticated() {
		return false
	}
	if _, size := collect(args, frame, lim.Multibulk, lim.Bulk); frame[0] != '*' || size != len(frame) {
		return false // it is an inline command, or empty ones came before
	}
	at := lineSize(len(args))
	headEnd, keyEnd := len(frame), len(frame)
	for i, arg := range args {
		line := at
		at += lineSize(len(arg))
		here := span{uint16(at), uint16(at + len(arg))}
		at += len(arg)
		switch i {
		case 0:
			s.name = here
		case 1:
			headEnd, keyEnd = line+1, at
		default:
			s.rest[i-2] = span{here.from - uint16(keyEnd), here.to - uint16(keyEnd)}
		}
		at += len("\r\n")
	}
	s.count, s.keyed = len(args), len(args) > 1
	s.headSize = copy(s.frame[:], frame[:headEnd])
	s.tailSize = copy(s.frame[s.headSize:], frame[keyEnd:])
	s.limits = lim
	s.number++
	return true
}

// lineSize is the length of a line that announces n.
func lineSize(n int) int {
	size := len("*0\r\n")
	for ; n >= 10; n /= 10 {
		size++
	}
	return size
}
