package scripted

import (
	"headgate/internal/number"
	"headgate/throttle"
)

// Plain is a call of CL.THROTTLE or GCRA that is answered as nearly all are: rate.lua decides it, and what it has found is a number or nothing.
// It takes up a fraction of what a Question does, and many are under way at a time. What is unusual about an answer is a Question's.
type Plain struct {
	// Decision is the answer.
	Decision throttle.Decision

	cell     throttle.GCRA
	quantity int64
	from, to uint32 // where the key stands in the request
}

// plainKeyMax bounds the length of a Plain's key.
const plainKeyMax = 4 << 10

// Cell is what was asked.
func (p *Plain) Cell() (cell *throttle.GCRA, quantity int64) { return &p.cell, p.quantity }

// Key is the key that was asked about, as a part of the request, which begins with the command.
func (p *Plain) Key(request []byte) []byte { return request[p.from:p.to:p.to] }

// PlainScript is the script that decides all of them.
func PlainScript() *Script { return rateScript }

// PlainWriter appends the commands of such calls. Most ask the same of another key, so it keeps what the last one has asked. The zero value
// is ready.
type PlainWriter struct {
	head, tail []byte // of a command, before the key's header and behind the key
	cell       throttle.GCRA
	quantity   int64
	plain      bool // a script decides what was asked last
}

// Ask makes the command that has p be a call about a key, in the memory of dst. It reports false, and makes none, if that is a Question's.
func (w *PlainWriter) Ask(p *Plain, dst, key []byte, cell *throttle.GCRA, quantity int64) (request []byte, ok bool) {
	if len(w.head) == 0 || *cell != w.cell || quantity != w.quantity {
		w.learn(cell, quantity)
	}
	if !w.plain || len(key) > plainKeyMax || string(key) == PoliciesKey {
		return dst[:0], false
	}
	p.cell, p.quantity = w.cell, w.quantity
	dst = append(dst[:0], w.head...)
	dst = appendHeader(dst, '$', int64(len(key)))
	p.from, p.to = uint32(len(dst)), uint32(len(dst)+len(key))
	dst = append(dst, key...)
	return append(dst, w.tail...), true
}

// learn keeps what all calls of a limit have in common.
func (w *PlainWriter) learn(cell *throttle.GCRA, quantity int64) {
	if len(w.head) == 0 {
		w.head = appendCall(nil, rateScript, false, 1, rateArguments)
	}
	w.cell, w.quantity = *cell, quantity
	terms, certain := cell.Terms(quantity)
	w.plain = certain && decides(terms)
	w.tail = appendTerms(append(w.tail[:0], '\r', '\n'), terms)
}

// Answer takes the reply, which is not kept. It reports false if that is unusual.
func (p *Plain) Answer(text []byte) bool {
	r := reply{rest: text}
	elements, now, code := r.array(), clock(&r), r.digit()
	state := r.text()
	tat, known := int64(0), true
	if state != nil {
		tat, known = number.ParseInt(state)
	}
	if r.bad || elements != 4 || !known {
		return false
	}
	d := &p.Decision
	return p.cell.DecideTo(d, now, tat, state != nil, p.quantity) == nil && d.Limited == (code == codeLimited) && (d.Write != throttle.Keep) == (code == codeCharged)
}
