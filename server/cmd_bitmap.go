package server

import (
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// Arguments that several commands on bit strings share.
var (
	bitUnitArg  = oneOf("index_unit", tok("BYTE"), tok("BIT")).opt()
	fieldGetArg = block("encoding_offset", str("encoding"), integer("offset")).after("GET")
)

// bitmapCommands: strings as rows of bits and of small integers.
var bitmapCommands = []*Command{
	{
		Name: "bitcount", Group: GroupBitmap, Since: "2.6.0", Complexity: "O(n) in the length of the range",
		Summary: "Count the bits that are set in a string, or between two positions of it; negative ones count from its end.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), block("index", integer("start"), integer("end"), bitUnitArg).opt()},
		Reply: ReplyInteger, Handler: bitCount,
	},
	{
		Name: "bitfield", Group: GroupBitmap, Since: "3.2.0", Complexity: "O(n) in the number of steps, and in the bytes by which the string grows",
		Summary: "Read, set and add to integers of any width within a string, step by step; OVERFLOW says what becomes of sums that do not fit.",
		Arity:   -2, Flags: Write | DenyOOM, Keys: varying(keys("RW ACCESS UPDATE", 1, 1, 1), bitfieldAccess),
		Args: []Arg{
			key("key"),
			oneOf("operation", fieldGetArg, block("write",
				oneOf("wrap_sat_fail", tok("WRAP"), tok("SAT"), tok("FAIL")).after("OVERFLOW").opt(),
				oneOf("write_operation",
					block("encoding_offset_value", str("encoding"), integer("offset"), integer("value")).after("SET"),
					block("encoding_offset_increment", str("encoding"), integer("offset"), integer("increment")).after("INCRBY"),
				),
			)).opt().multi(),
		},
		Reply: ReplyArray, Handler: bitFieldWrite,
	},
	{
		Name: "bitfield_ro", Group: GroupBitmap, Since: "6.0.0", Complexity: "O(n) in the number of steps",
		Summary: "Read integers of any width within a string: BITFIELD for readers.",
		Arity:   -2, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), fieldGetArg.opt().multi().eachWithToken()},
		Reply: ReplyArray, Handler: bitFieldRead,
	},
	{
		Name: "bitop", Group: GroupBitmap, Since: "2.6.0", Complexity: "O(n) in the length of all strings",
		Summary: "Combine strings bit by bit with AND, OR or XOR, or flip the bits of one with NOT, keep the result at a key, and return its length.",
		Arity:   -4, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 2, 2, 1), keys("RO ACCESS", 3, -1, 1)),
		Args: []Arg{str("operation"), key("destkey"), key("key").multi()}, Reply: ReplyInteger, Handler: bitOp,
	},
	{
		Name: "bitpos", Group: GroupBitmap, Since: "2.8.7", Complexity: "O(n) in the length of the range",
		Summary: "Find the first bit that is 0, or 1, in a string or between two positions of it, -1 if there is none.",
		Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{
			key("key"), integer("bit"),
			block("index", integer("start"), block("end_index", integer("end"), bitUnitArg).opt()).opt(),
		},
		Reply: ReplyInteger, Handler: bitPos,
	},
	{
		Name: "getbit", Group: GroupBitmap, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Return a bit of a string, 0 beyond its end.",
		Arity:   3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), integer("offset")}, Reply: ReplyInteger, Handler: getBit,
	},
	{
		Name: "setbit", Group: GroupBitmap, Since: "2.2.0", Complexity: "O(1), and O(n) in the bytes by which the string grows",
		Summary: "Set or clear a bit of a string, which grows with zero bytes to hold it, and return what the bit was.",
		Arity:   4, Flags: Write | DenyOOM | Sampled, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("offset"), integer("value")}, Reply: ReplyInteger, Handler: setBit,
	},
}

// Errors of the commands on bit strings.
const (
	errBitOffset     = "ERR bit offset is not an integer or out of range"
	errBitValue      = "ERR bit is not an integer or out of range"
	errBitArgument   = "ERR The bit argument must be 1 or 0."
	errBitOpNot      = "ERR BITOP NOT must be called with a single source key."
	errFieldType     = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	errOverflowWord  = "ERR Invalid OVERFLOW type specified"
	errFieldReadOnly = "ERR BITFIELD_RO only supports the GET subcommand"
)

// Units of ranges, in bits.
const (
	unitBit  = 1
	unitByte = 8
)

// bitOffset parses text as the place of a bit that a string may have, counted in units of unit bits, or sends the error and
// returns false. A product that wraps around is taken as redis-server takes it.
// bitfieldAccess is what BITFIELD does with its key: it only reads if all steps do. What makes no sense may be anything.
func bitfieldAccess(args [][]byte) string {
	for i := 2; i < len(args); {
		left := len(args) - i - 1
		switch {
		case left >= 2 && ascii.EqualFold(args[i], "GET"):
			i += 3
		case left >= 1 && ascii.EqualFold(args[i], "OVERFLOW"):
			i += 2
		default:
			return "RW ACCESS UPDATE"
		}
	}
	return "RO ACCESS"
}

func (c *Ctx) bitOffset(text []byte, unit int64) (int, bool) {
	n, ok := number.ParseInt(text)
	n *= unit
	if !ok || n < 0 || n/8 >= int64(c.cfg.ProtoMaxBulkLen) {
		c.err(errBitOffset)
		return 0, false
	}
	return int(n), true
}

// bitUnit parses args[i] as the unit of a range, bytes if there is no such argument, or sends the error and returns false.
func (c *Ctx) bitUnit(i int) (unit int64, ok bool) {
	switch {
	case i >= len(c.args) || c.is(i, "BYTE"):
		return unitByte, true
	case c.is(i, "BIT"):
		return unitBit, true
	}
	c.err(errSyntax)
	return 0, false
}

// bitSpan returns the bits from position start to end, both included, of a string of length bytes. Positions are in units of unit
// bits; negative ones count from the string's end. An empty span has first > last.
func bitSpan(start, end, unit int64, length int) (first, last int) {
	total := int64(length) * 8 / unit
	if start < 0 {
		start = max(start+total, 0)
	}
	if end < 0 {
		end = max(end+total, 0)
	}
	end = min(end, total-1)
	if start > end {
		return 0, -1
	}
	return int(start * unit), int(end*unit + unit - 1)
}

// bitOf returns bit number i of text, 0 beyond its end.
func bitOf(text []byte, i int) byte {
	if i/8 >= len(text) {
		return 0
	}
	return text[i/8] >> (7 - i%8) & 1
}

func getBit(c *Ctx) {
	offset, ok := c.bitOffset(c.args[2], unitBit)
	if !ok {
		return
	}
	e, found, ok := c.readString(1)
	switch {
	case !ok:
	case !found:
		c.reply.Zero()
	default:
		var digits integerText
		c.reply.Int(int64(bitOf(e.Bytes(digits[:]), offset)))
	}
}

func setBit(c *Ctx) {
	offset, ok := c.bitOffset(c.args[2], unitBit)
	if !ok {
		return
	}
	value, ok := number.ParseInt(c.args[3])
	if !ok || value < 0 || value > 1 {
		c.err(errBitValue)
		return
	}
	before := c.core.keys.Dirty()
	e, err := c.db.GrowString(c.key(1), c.now, offset/8+1)
	if err != nil {
		c.fail(err)
		return
	}
	var digits integerText
	old := bitOf(e.Bytes(digits[:]), offset)
	if old != byte(value) {
		e.WritableBytes()[offset/8] ^= 1 << (7 - offset%8)
	}
	c.notifyBits(before)
	c.reply.Int(int64(old))
}

// notifyBits tells that bits at args[1] have been changed, if Dirty is not what it was before.
func (c *Ctx) notifyBits(before uint64) {
	if c.core.keys.Dirty() != before {
		c.notify(config.EventString, "setbit", c.args[1])
	}
}

// bitCount looks for the key before it parses its range: a missing key counts 0 whatever follows it.
func bitCount(c *Ctx) {
	e, found, ok := c.readString(1)
	switch {
	case !ok:
		return
	case !found:
		c.reply.Zero()
		return
	}
	var digits integerText
	text := e.Bytes(digits[:])
	if first, last, ok := c.countSpan(len(text)); ok {
		c.reply.Int(int64(store.CountBits(text, first, last)))
	}
}

// countSpan parses BITCOUNT's range for a string of length bytes, or sends the error and returns false.
func (c *Ctx) countSpan(length int) (first, last int, ok bool) {
	switch len(c.args) {
	case 2:
		return 0, length*8 - 1, true
	case 4, 5:
	default:
		c.err(errSyntax)
		return 0, 0, false
	}
	start, ok := c.integer(2)
	if !ok {
		return 0, 0, false
	}
	end, ok := c.integer(3)
	if !ok {
		return 0, 0, false
	}
	if start < 0 && end < 0 && start > end { // empty, whatever the unit
		return 0, -1, true
	}
	unit, ok := c.bitUnit(4)
	if !ok {
		return 0, 0, false
	}
	first, last = bitSpan(start, end, unit, length)
	return first, last, true
}

// bitPos looks for the key before it parses its range. A missing key is an endless row of zeros.
func bitPos(c *Ctx) {
	bit, ok := c.integer(2)
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		c.err(errBitArgument)
		return
	}
	e, found, ok := c.readString(1)
	switch {
	case !ok:
		return
	case !found:
		c.reply.Int(-bit)
		return
	}
	var digits integerText
	text := e.Bytes(digits[:])
	first, last, ok := c.posSpan(len(text))
	if !ok {
		return
	}
	pos := store.FindBit(text, bit == 1, first, last)
	openEnd := len(c.args) < 5
	if pos < 0 && bit == 0 && openEnd && first <= last {
		pos = last + 1 // the zeros begin behind the string
	}
	c.reply.Int(int64(pos))
}

// posSpan parses BITPOS's range for a string of length bytes, or sends the error and returns false.
func (c *Ctx) posSpan(length int) (first, last int, ok bool) {
	if len(c.args) > 6 {
		c.err(errSyntax)
		return 0, 0, false
	}
	start, end, unit := int64(0), int64(-1), int64(unitByte)
	if len(c.args) > 3 {
		if start, ok = c.integer(3); !ok {
			return 0, 0, false
		}
	}
	if unit, ok = c.bitUnit(5); !ok {
		return 0, 0, false
	}
	if len(c.args) > 4 {
		if end, ok = c.integer(4); !ok {
			return 0, 0, false
		}
	}
	first, last = bitSpan(start, end, unit, length)
	return first, last, true
}

// bitOperation parses args[1], or sends the error and returns false. combine is nil for NOT.
func (c *Ctx) bitOperation() (combine func(dst, src []byte), ok bool) {
	switch {
	case c.is(1, "AND"):
		return store.AndBits, true
	case c.is(1, "OR"):
		return store.OrBits, true
	case c.is(1, "XOR"):
		return store.XorBits, true
	case !c.is(1, "NOT"):
		c.err(errSyntax)
	case len(c.args) != 4:
		c.err(errBitOpNot)
	default:
		return nil, true
	}
	return nil, false
}

// bitOp is one of the few commands that allocate: the result must not overwrite a source before all are read.
func bitOp(c *Ctx) {
	const sources = 3 // index of the first source
	combine, ok := c.bitOperation()
	if !ok {
		return
	}
	longest := 0
	for i := sources; i < len(c.args); i++ {
		e, found, ok := c.readString(i)
		if !ok {
			return
		}
		if found {
			longest = max(longest, e.StrLen())
		}
	}
	if longest == 0 {
		if e, found := c.db.Find(c.key(2), c.now); found {
			e.Delete()
			c.notify(config.EventGeneric, "del", c.args[2])
		}
		c.reply.Zero()
		return
	}
	result := make([]byte, longest)
	for i := sources; i < len(c.args); i++ {
		var digits integerText
		var text []byte
		if e, found := c.db.Find(c.key(i), c.now); found {
			text = e.Bytes(digits[:])
		}
		if i == sources {
			copy(result, text)
		} else {
			combine(result, text)
		}
	}
	if combine == nil {
		store.FlipBits(result)
	}
	k := c.key(2)
	c.settle(k)
	c.db.SetBytes(k, result)
	c.notify(config.EventString, "set", k.Name)
	c.reply.Int(int64(longest))
}

func bitFieldWrite(c *Ctx) { c.bitFields(false) }
func bitFieldRead(c *Ctx)  { c.bitFields(true) }

// bitFields carries out a BITFIELD, of which only the reading steps are allowed if readOnly.
func (c *Ctx) bitFields(readOnly bool) {
	var room [fieldStepsAtHand]fieldStep
	steps, ok := c.fieldSteps(room[:0])
	if !ok {
		return
	}
	reach := -1 // the last bit written to
	for i := range steps {
		if steps[i].action != fieldGet {
			reach = max(reach, steps[i].field.last())
		}
	}
	switch {
	case reach < 0:
		c.readFields(steps)
	case readOnly:
		c.err(errFieldReadOnly)
	default:
		c.changeFields(steps, reach)
	}
}

// readFields carries out steps that all read.
func (c *Ctx) readFields(steps []fieldStep) {
	e, found, ok := c.readString(1)
	if !ok {
		return
	}
	var digits integerText
	var text []byte
	if found {
		text = e.Bytes(digits[:])
	}
	c.reply.Array(len(steps))
	for i := range steps {
		c.reply.Int(steps[i].field.load(text))
	}
}

// changeFields carries out steps of which some write, as far as bit reach. The string grows to hold it even if no step succeeds.
func (c *Ctx) changeFields(steps []fieldStep, reach int) {
	before := c.core.keys.Dirty()
	e, err := c.db.GrowString(c.key(1), c.now, reach/8+1)
	if err != nil {
		c.fail(err)
		return
	}
	var digits integerText
	c.reply.Array(len(steps))
	written := false
	for i := range steps {
		done := c.changeField(&e, e.Bytes(digits[:]), &steps[i])
		written = written || done && steps[i].action != fieldGet
	}
	if written {
		c.notifyBits(before)
	}
}

// changeField carries out one step on the string of e, whose text is given, and sends its reply: what the field held before a
// SET, the sum of an INCRBY. It reports false when the field cannot hold the number.
func (c *Ctx) changeField(e *store.Entry, text []byte, step *fieldStep) bool {
	old := step.field.load(text)
	value, fits, reply := old, true, old
	switch step.action {
	case fieldSet:
		value, fits = step.field.sum(step.operand, 0, step.overflow)
	case fieldIncrBy:
		value, fits = step.field.sum(old, step.operand, step.overflow)
		reply = value
	}
	if !fits {
		c.reply.Null()
		return false
	}
	if value != old {
		step.field.store(e.WritableBytes(), value)
	}
	c.reply.Int(reply)
	return true
}
