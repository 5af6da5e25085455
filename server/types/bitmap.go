package types

import (
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// Arguments that several commands on bit strings share.
var (
	bitUnitArg  = command.OneOf("index_unit", command.Tok("BYTE"), command.Tok("BIT")).Opt()
	fieldGetArg = command.Block("encoding_offset", command.Str("encoding"), command.Integer("offset")).After("GET")
)

// bitmapCommands: strings as rows of bits and of small integers.
var bitmapCommands = []*command.Command{
	{
		Name: "bitcount", Group: command.GroupBitmap, Since: "2.6.0", Complexity: "O(n) in the length of the range",
		Summary: "Count the bits that are set in a string, or between two positions of it; negative ones count from its end.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Block("index", command.Integer("start"), command.Integer("end"), bitUnitArg).Opt()},
		Reply: command.ReplyInteger, Handler: bitCount,
	},
	{
		Name: "bitfield", Group: command.GroupBitmap, Since: "3.2.0", Complexity: "O(n) in the number of steps, and in the bytes by which the string grows",
		Summary: "Read, set and add to integers of any width within a string, step by step; OVERFLOW says what becomes of sums that do not fit.",
		Arity:   -2, Flags: command.Write | command.DenyOOM, Keys: command.Varying(command.Keys("RW ACCESS UPDATE", 1, 1, 1), bitfieldAccess),
		Args: []command.Arg{
			command.Key("key"),
			command.OneOf("operation", fieldGetArg, command.Block("write",
				command.OneOf("wrap_sat_fail", command.Tok("WRAP"), command.Tok("SAT"), command.Tok("FAIL")).After("OVERFLOW").Opt(),
				command.OneOf("write_operation",
					command.Block("encoding_offset_value", command.Str("encoding"), command.Integer("offset"), command.Integer("value")).After("SET"),
					command.Block("encoding_offset_increment", command.Str("encoding"), command.Integer("offset"), command.Integer("increment")).After("INCRBY"),
				),
			)).Opt().Multi(),
		},
		Reply: command.ReplyArray, Handler: bitFieldWrite,
	},
	{
		Name: "bitfield_ro", Group: command.GroupBitmap, Since: "6.0.0", Complexity: "O(n) in the number of steps",
		Summary: "Read integers of any width within a string; BITFIELD without writes.",
		Arity:   -2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), fieldGetArg.Opt().Multi().EachWithToken()},
		Reply: command.ReplyArray, Handler: bitFieldRead,
	},
	{
		Name: "bitop", Group: command.GroupBitmap, Since: "2.6.0", Complexity: "O(n) in the length of all strings",
		Summary: "Combine strings bit by bit with AND, OR or XOR, or flip the bits of one with NOT, keep the result at a key, and return its length.",
		Arity:   -4, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 2, 2, 1), command.Keys("RO ACCESS", 3, -1, 1)),
		Args: []command.Arg{command.Str("operation"), command.Key("destkey"), command.Key("key").Multi()}, Reply: command.ReplyInteger, Handler: bitOp,
	},
	{
		Name: "bitpos", Group: command.GroupBitmap, Since: "2.8.7", Complexity: "O(n) in the length of the range",
		Summary: "Find the first bit that is 0, or 1, in a string or between two positions of it, -1 if there is none.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{
			command.Key("key"), command.Integer("bit"),
			command.Block("index", command.Integer("start"), command.Block("end_index", command.Integer("end"), bitUnitArg).Opt()).Opt(),
		},
		Reply: command.ReplyInteger, Handler: bitPos,
	},
	{
		Name: "getbit", Group: command.GroupBitmap, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Return a bit of a string, 0 beyond its end.",
		Arity:   3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("offset")}, Reply: command.ReplyInteger, Handler: getBit,
	},
	{
		Name: "setbit", Group: command.GroupBitmap, Since: "2.2.0", Complexity: "O(1), and O(n) in the bytes by which the string grows",
		Summary: "Set or clear a bit of a string, which grows with zero bytes to hold it, and return what the bit was.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Sampled, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("offset"), command.Integer("value")}, Reply: command.ReplyInteger, Handler: setBit,
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

// bitOffset parses text as the place of a bit that a string may have, counted in units of unit bits, or sends the error and
// returns false. A product that wraps around is taken as redis-server takes it.
func bitOffset(c *command.Ctx, text []byte, unit int64) (int, bool) {
	n, ok := number.ParseInt(text)
	n *= unit
	if !ok || n < 0 || n/8 >= int64(c.Cfg.ProtoMaxBulkLen) {
		c.Err(errBitOffset)
		return 0, false
	}
	return int(n), true
}

// bitUnit parses args[i] as the unit of a range, bytes if there is no such argument, or sends the error and returns false.
func bitUnit(c *command.Ctx, i int) (unit int64, ok bool) {
	switch {
	case i >= len(c.Args) || c.Is(i, "BYTE"):
		return unitByte, true
	case c.Is(i, "BIT"):
		return unitBit, true
	}
	c.Err(command.ErrSyntax)
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

func getBit(c *command.Ctx) {
	offset, ok := bitOffset(c, c.Args[2], unitBit)
	if !ok {
		return
	}
	e, found, ok := readString(c, 1)
	switch {
	case !ok:
	case !found:
		c.Reply.Zero()
	default:
		var digits command.IntegerText
		c.Reply.Int(int64(bitOf(e.Bytes(digits[:]), offset)))
	}
}

func setBit(c *command.Ctx) {
	offset, ok := bitOffset(c, c.Args[2], unitBit)
	if !ok {
		return
	}
	value, ok := number.ParseInt(c.Args[3])
	if !ok || value < 0 || value > 1 {
		c.Err(errBitValue)
		return
	}
	before := c.Core.Keys.Dirty()
	e, err := c.DB.GrowString(c.Key(1), c.Now, offset/8+1)
	if err != nil {
		c.Fail(err)
		return
	}
	var digits command.IntegerText
	old := bitOf(e.Bytes(digits[:]), offset)
	if old != byte(value) {
		e.WritableBytes()[offset/8] ^= 1 << (7 - offset%8)
	}
	notifyBits(c, before)
	c.Reply.Int(int64(old))
}

// notifyBits tells that bits at args[1] have been changed, if Dirty is not what it was before.
func notifyBits(c *command.Ctx, before uint64) {
	if c.Core.Keys.Dirty() != before {
		c.Notify(config.EventString, "setbit", c.Args[1])
	}
}

// bitCount looks for the key before it parses its range: a missing key counts 0 whatever follows it.
func bitCount(c *command.Ctx) {
	e, found, ok := readString(c, 1)
	switch {
	case !ok:
		return
	case !found:
		c.Reply.Zero()
		return
	}
	var digits command.IntegerText
	text := e.Bytes(digits[:])
	if first, last, ok := countSpan(c, len(text)); ok {
		c.Reply.Int(int64(store.CountBits(text, first, last)))
	}
}

// countSpan parses BITCOUNT's range for a string of length bytes, or sends the error and returns false.
func countSpan(c *command.Ctx, length int) (first, last int, ok bool) {
	switch len(c.Args) {
	case 2:
		return 0, length*8 - 1, true
	case 4, 5:
	default:
		c.Err(command.ErrSyntax)
		return 0, 0, false
	}
	start, ok := c.Integer(2)
	if !ok {
		return 0, 0, false
	}
	end, ok := c.Integer(3)
	if !ok {
		return 0, 0, false
	}
	if start < 0 && end < 0 && start > end { // empty, whatever the unit
		return 0, -1, true
	}
	unit, ok := bitUnit(c, 4)
	if !ok {
		return 0, 0, false
	}
	first, last = bitSpan(start, end, unit, length)
	return first, last, true
}

// bitPos looks for the key before it parses its range. A missing key is an endless row of zeros.
func bitPos(c *command.Ctx) {
	bit, ok := c.Integer(2)
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		c.Err(errBitArgument)
		return
	}
	e, found, ok := readString(c, 1)
	switch {
	case !ok:
		return
	case !found:
		c.Reply.Int(-bit)
		return
	}
	var digits command.IntegerText
	text := e.Bytes(digits[:])
	first, last, ok := posSpan(c, len(text))
	if !ok {
		return
	}
	pos := store.FindBit(text, bit == 1, first, last)
	openEnd := len(c.Args) < 5
	if pos < 0 && bit == 0 && openEnd && first <= last {
		pos = last + 1 // the zeros begin behind the string
	}
	c.Reply.Int(int64(pos))
}

// posSpan parses BITPOS's range for a string of length bytes, or sends the error and returns false.
func posSpan(c *command.Ctx, length int) (first, last int, ok bool) {
	if len(c.Args) > 6 {
		c.Err(command.ErrSyntax)
		return 0, 0, false
	}
	start, end, unit := int64(0), int64(-1), int64(unitByte)
	if len(c.Args) > 3 {
		if start, ok = c.Integer(3); !ok {
			return 0, 0, false
		}
	}
	if unit, ok = bitUnit(c, 5); !ok {
		return 0, 0, false
	}
	if len(c.Args) > 4 {
		if end, ok = c.Integer(4); !ok {
			return 0, 0, false
		}
	}
	first, last = bitSpan(start, end, unit, length)
	return first, last, true
}

// bitOperation parses args[1], or sends the error and returns false. combine is nil for NOT.
func bitOperation(c *command.Ctx) (combine func(dst, src []byte), ok bool) {
	switch {
	case c.Is(1, "AND"):
		return store.AndBits, true
	case c.Is(1, "OR"):
		return store.OrBits, true
	case c.Is(1, "XOR"):
		return store.XorBits, true
	case !c.Is(1, "NOT"):
		c.Err(command.ErrSyntax)
	case len(c.Args) != 4:
		c.Err(errBitOpNot)
	default:
		return nil, true
	}
	return nil, false
}

// bitOp is one of the few commands that allocate: the result must not overwrite a source before all are read.
func bitOp(c *command.Ctx) {
	const sources = 3 // index of the first source
	combine, ok := bitOperation(c)
	if !ok {
		return
	}
	longest := 0
	for i := sources; i < len(c.Args); i++ {
		e, found, ok := readString(c, i)
		if !ok {
			return
		}
		if found {
			longest = max(longest, e.StrLen())
		}
	}
	if longest == 0 {
		if e, found := c.DB.Find(c.Key(2), c.Now); found {
			e.Delete()
			c.Notify(config.EventGeneric, "del", c.Args[2])
		}
		c.Reply.Zero()
		return
	}
	result := make([]byte, longest)
	for i := sources; i < len(c.Args); i++ {
		var digits command.IntegerText
		var text []byte
		if e, found := c.DB.Find(c.Key(i), c.Now); found {
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
	k := c.Key(2)
	c.Settle(k)
	c.DB.SetBytes(k, result)
	c.Notify(config.EventString, "set", k.Name)
	c.Reply.Int(int64(longest))
}

func bitFieldWrite(c *command.Ctx) { bitFields(c, false) }
func bitFieldRead(c *command.Ctx)  { bitFields(c, true) }

// bitFields carries out a BITFIELD, of which only the reading steps are allowed if readOnly.
func bitFields(c *command.Ctx, readOnly bool) {
	var room [fieldStepsAtHand]fieldStep
	steps, ok := fieldSteps(c, room[:0])
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
		readFields(c, steps)
	case readOnly:
		c.Err(errFieldReadOnly)
	default:
		changeFields(c, steps, reach)
	}
}

// readFields carries out steps that all read.
func readFields(c *command.Ctx, steps []fieldStep) {
	e, found, ok := readString(c, 1)
	if !ok {
		return
	}
	var digits command.IntegerText
	var text []byte
	if found {
		text = e.Bytes(digits[:])
	}
	c.Reply.Array(len(steps))
	for i := range steps {
		c.Reply.Int(steps[i].field.load(text))
	}
}

// changeFields carries out steps of which some write, as far as bit reach. The string grows to hold it even if no step succeeds.
func changeFields(c *command.Ctx, steps []fieldStep, reach int) {
	before := c.Core.Keys.Dirty()
	e, err := c.DB.GrowString(c.Key(1), c.Now, reach/8+1)
	if err != nil {
		c.Fail(err)
		return
	}
	var digits command.IntegerText
	c.Reply.Array(len(steps))
	written := false
	for i := range steps {
		done := changeField(c, &e, e.Bytes(digits[:]), &steps[i])
		written = written || done && steps[i].action != fieldGet
	}
	if written {
		notifyBits(c, before)
	}
}

// changeField carries out one step on the string of e, whose text is given, and sends its reply: what the field held before a
// SET, the sum of an INCRBY. It reports false when the field cannot hold the number.
func changeField(c *command.Ctx, e *store.Entry, text []byte, step *fieldStep) bool {
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
		c.Reply.Null()
		return false
	}
	if value != old {
		step.field.store(e.WritableBytes(), value)
	}
	c.Reply.Int(reply)
	return true
}
