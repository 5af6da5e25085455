package aof

import (
	"bytes"
	"fmt"

	"headgate/internal/number"
)

// Position says where in a history of changes, which replicas go by, the data are.
type Position struct {
	ID     string // the history's name, of hexadecimal digits
	Offset int64  // how many bytes of changes there have been
	DB     int    // the database that the next of them is for, if it names none; a primary's own names one
}

// tagPosition begins the annotation that has a position.
const tagPosition = "REPL:"

// Annotation is the position as a line of the file: the data are so as far as the line, and no further.
func (p Position) Annotation() []byte {
	return fmt.Appendf(nil, "#%s%s:%d:%d\r\n", tagPosition, p.ID, p.Offset, p.DB)
}

// ReadPosition returns the position that an annotation has, without its #, if it has one.
func ReadPosition(annotation []byte) (p Position, ok bool) {
	text, found := bytes.CutPrefix(annotation, []byte(tagPosition))
	parts := bytes.Split(text, []byte(":"))
	if !found || len(parts) != 3 {
		return p, false
	}
	offset, ok1 := number.ParseInt(parts[1])
	db, ok2 := number.ParseInt(parts[2])
	return Position{string(parts[0]), offset, int(db)}, ok1 && ok2
}
