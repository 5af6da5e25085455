package types

import (
	"encoding/binary"

	"headgate/internal/number"
	"headgate/server/command"
)

// Widths of BITFIELD's integers. An unsigned one of 64 bits would not fit RESP's integers.
const (
	maxSignedBits   = 64
	maxUnsignedBits = 63
)

// fieldWindow is how many bytes an integer of up to 64 bits can reach into, when it begins inside a byte.
const fieldWindow = 9

// bitField is the place and the type of one integer within a string.
type bitField struct {
	signed bool
	bits   int // its width
	offset int // its first bit, the most significant one
}

// last is the field's last bit.
func (f bitField) last() int { return f.offset + f.bits - 1 }

// window copies the bytes that the field reaches into, those beyond the string's end being zero, and returns them as a word and a
// byte, with the number of bits before the field.
func (f bitField) window(text []byte) (head uint64, tail byte, shift int) {
	var w [fieldWindow]byte
	if at := f.offset / 8; at < len(text) {
		copy(w[:], text[at:])
	}
	return binary.BigEndian.Uint64(w[:]), w[fieldWindow-1], f.offset % 8
}

// load reads the field. Bits beyond the string's end are zero.
func (f bitField) load(text []byte) int64 {
	head, tail, shift := f.window(text)
	aligned := head<<shift | uint64(tail)>>(8-shift)
	if f.signed {
		return int64(aligned) >> (64 - f.bits)
	}
	return int64(aligned >> (64 - f.bits))
}

// store writes the field, which must lie within the string.
func (f bitField) store(text []byte, value int64) {
	head, tail, shift := f.window(text)
	mask := ^uint64(0) << (64 - f.bits)
	aligned := uint64(value) << (64 - f.bits)
	var w [fieldWindow]byte
	binary.BigEndian.PutUint64(w[:], head&^(mask>>shift)|aligned>>shift)
	w[fieldWindow-1] = tail&^byte(mask<<(8-shift)) | byte(aligned<<(8-shift))
	copy(text[f.offset/8:], w[:])
}

// bounds are the least and the greatest number that the field can hold.
func (f bitField) bounds() (least, greatest int64) {
	if !f.signed {
		return 0, int64(1)<<f.bits - 1
	}
	greatest = int64(^uint64(0) >> (65 - f.bits))
	return -greatest - 1, greatest
}

// overflow is what BITFIELD does with a number that its field cannot hold.
type overflow uint8

const (
	overflowWrap overflow = iota // keeps the lowest bits
	overflowSat                  // takes the bound on that side
	overflowFail                 // leaves the field as it is
)

// sum is value + delta as the field can hold it. It reports false if it cannot and how is overflowFail. value comes from the
// field unless delta is 0.
//
// The room above a value far below a signed field's least wraps around and turns negative; redis-server takes such a value
// for one that is too great, and so do we.
func (f bitField) sum(value, delta int64, how overflow) (int64, bool) {
	least, greatest := f.bounds()
	above, below := greatest-value, least-value
	limit := least
	switch {
	case value > greatest, !f.signed && value < 0, delta > above && (f.bits < maxSignedBits || value >= 0):
		limit = greatest
	case value < least, delta < below && (f.bits < maxSignedBits || value < 0):
	default:
		return value + delta, true
	}
	switch how {
	case overflowFail:
		return 0, false
	case overflowSat:
		return limit, true
	}
	aligned := (value + delta) << (64 - f.bits)
	if f.signed {
		return aligned >> (64 - f.bits), true
	}
	return int64(uint64(aligned) >> (64 - f.bits)), true
}

// fieldAction is what one step of BITFIELD does with its field.
type fieldAction uint8

const (
	fieldGet fieldAction = iota
	fieldSet
	fieldIncrBy
)

// fieldStep is one step of BITFIELD.
type fieldStep struct {
	field    bitField
	action   fieldAction
	overflow overflow
	operand  int64 // the value of SET, the increment of INCRBY
}

// fieldStepsAtHand is for how many steps a BITFIELD has room without allocating.
const fieldStepsAtHand = 16

// fieldSteps parses the steps of a BITFIELD from args[2] on and appends them to steps, or sends the error and returns false.
func fieldSteps(c *command.Ctx, steps []fieldStep) ([]fieldStep, bool) {
	how := overflowWrap
	for i := 2; i < len(c.Args); {
		left := len(c.Args) - i - 1
		step := fieldStep{overflow: how}
		switch {
		case c.Is(i, "GET") && left >= 2:
		case c.Is(i, "SET") && left >= 3:
			step.action = fieldSet
		case c.Is(i, "INCRBY") && left >= 3:
			step.action = fieldIncrBy
		case c.Is(i, "OVERFLOW") && left >= 1:
			var ok bool
			if how, ok = parseOverflow(c, i+1); !ok {
				return nil, false
			}
			i += 2
			continue
		default:
			c.Err(command.ErrSyntax)
			return nil, false
		}
		if !parseFieldStep(c, &step, i) {
			return nil, false
		}
		steps = append(steps, step)
		i += 3
		if step.action != fieldGet {
			i++
		}
	}
	return steps, true
}

// parseFieldStep parses what follows the action at args[i] into step, or sends the error and returns false.
func parseFieldStep(c *command.Ctx, step *fieldStep, i int) (ok bool) {
	if step.field, ok = parseBitField(c, i+1); ok && step.action != fieldGet {
		step.operand, ok = c.Integer(i + 3)
	}
	return ok
}

// parseOverflow parses the word after OVERFLOW, or sends the error and returns false.
func parseOverflow(c *command.Ctx, i int) (overflow, bool) {
	switch {
	case c.Is(i, "WRAP"):
		return overflowWrap, true
	case c.Is(i, "SAT"):
		return overflowSat, true
	case c.Is(i, "FAIL"):
		return overflowFail, true
	}
	c.Err(errOverflowWord)
	return 0, false
}

// parseBitField parses args[i] as a field's type and the argument after it as its offset, which with # before it counts fields of
// that width. Or it sends the error and returns false.
func parseBitField(c *command.Ctx, i int) (f bitField, ok bool) {
	width := command.CutAtNUL(c.Args[i])
	if len(width) == 0 || (width[0] != 'i' && width[0] != 'u') {
		c.Err(errFieldType)
		return f, false
	}
	f.signed = width[0] == 'i'
	most := int64(maxUnsignedBits)
	if f.signed {
		most = maxSignedBits
	}
	n, ok := number.ParseInt(width[1:])
	if !ok || n < 1 || n > most {
		c.Err(errFieldType)
		return f, false
	}
	f.bits = int(n)
	offset, unit := c.Args[i+1], int64(1)
	if len(offset) > 0 && offset[0] == '#' {
		offset, unit = offset[1:], n
	}
	f.offset, ok = bitOffset(c, offset, unit)
	return f, ok
}
