package scripted

import (
	"bytes"

	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/throttle"
)

// Plain is a call of CL.THROTTLE or GCRA that is answered as nearly all are: rate.lua decides it, and what it has found is a number or nothing.
// It takes up a fraction of what a Question does, and many are under way at a time. What is unusual about an answer is a Question's.
type Plain struct {
	// Decision is the answer.
	Decision throttle.Decision

	cell     throttle.GCRA
	quantity int64
	from, to uint32 // where the key stands in the words
}

// plainKeyMax bounds the length of a Plain's key.
const plainKeyMax = 4 << 10

// Cell is what was asked.
func (p *Plain) Cell() (cell *throttle.GCRA, quantity int64) { return &p.cell, p.quantity }

// Key is the key that was asked about, as a part of the words.
func (p *Plain) Key(words []byte) []byte { return words[p.from:p.to:p.to] }

// PlainScript is the script that decides all of them.
func PlainScript() *Script { return rateScript }

// PlainWriter writes the words of such calls: what follows Joint.Head in a command. Most ask the same of another key, so it keeps what the last one has
// asked. The zero value is ready.
type PlainWriter struct {
	tail     []byte // of the words, behind the key
	cell     throttle.GCRA
	quantity int64
	plain    bool // a script decides what was asked last
}

// Ask makes the words that have p be a call about a key, in the memory of dst. It reports false, and makes none, if that is a Question's.
func (w *PlainWriter) Ask(p *Plain, dst, key []byte, cell *throttle.GCRA, quantity int64) (words []byte, ok bool) {
	if len(w.tail) == 0 || *cell != w.cell || quantity != w.quantity {
		w.learn(cell, quantity)
	}
	if !w.plain || len(key) > plainKeyMax || string(key) == PoliciesKey {
		return dst[:0], false
	}
	p.cell, p.quantity = w.cell, w.quantity
	dst = respcmd.AppendHeader(dst[:0], '$', int64(len(key)))
	p.from, p.to = uint32(len(dst)), uint32(len(dst)+len(key))
	dst = append(dst, key...)
	return append(dst, w.tail...), true
}

// learn keeps what all calls of a limit have in common.
func (w *PlainWriter) learn(cell *throttle.GCRA, quantity int64) {
	w.cell, w.quantity = *cell, quantity
	terms, certain := cell.Terms(quantity)
	w.plain = certain && decides(terms)
	w.tail = appendTerms(append(w.tail[:0], '\r', '\n'), terms)
}

// Answer takes the reply, which is not kept; common is what it has in common with other calls' of the same joint command, nil if it is whole. It reports
// false if the answer is unusual.
func (p *Plain) Answer(common, text []byte) bool {
	r := reply{rest: text}
	if common != nil {
		r.rest = common
	}
	elements, now := r.array(), clock(&r)
	var code int64
	var state []byte
	if common != nil {
		r.rest = text
		code, state = r.joined()
		elements += 2
	} else {
		code, state = r.digit(), r.text()
	}
	tat, known := int64(0), true
	if state != nil {
		tat, known = number.ParseInt(state)
	}
	if r.bad || elements != 4 || !known || code == codeLeft {
		return false
	}
	d := &p.Decision
	return p.cell.DecideTo(d, now, tat, state != nil, p.quantity) == nil && d.Limited == (code == codeLimited) && (d.Write != throttle.Keep) == (code == codeCharged)
}

// joined returns what a call of a joint command has instead of the last two elements of a reply: the code, and the state found, nil for none.
func (r *reply) joined() (code int64, state []byte) {
	if len(r.rest) > 0 && r.rest[0] == ':' {
		code = r.digit()
	} else if text := r.text(); len(text) > 0 {
		code, state = int64(text[0])-'0', text[1:]
	} else {
		r.fail()
	}
	if len(r.rest) > 0 || code < codePasses || code > codeLimited {
		r.fail()
	}
	return code, state
}

// WholeReply appends the reply that a call would have had alone, which has had one in a joint command: common with others, and its own. What is none of
// the script's is so whole, too.
func WholeReply(dst, common, text []byte) []byte {
	r := reply{rest: text}
	code, state := r.joined()
	if r.bad {
		return append(dst, text...)
	}
	_, times, _ := bytes.Cut(common, []byte("\r\n"))
	elements := int64(4)
	if state == nil && code == codeLeft {
		elements = 3
	}
	dst = append(respcmd.AppendHeader(dst, '*', elements), times...)
	dst = respcmd.AppendHeader(dst, ':', code)
	switch {
	case state != nil:
		dst = respcmd.AppendBulk(dst, state)
	case elements == 4:
		dst = respcmd.AppendHeader(dst, '$', -1)
	}
	return dst
}
