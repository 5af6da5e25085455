package server

import (
	"headgate/server/config"
	"headgate/store"
)

// This file: the commands that take elements from the ends of lists, and those that wait for one.

func lpop(c *Ctx) { c.pop(true) }
func rpop(c *Ctx) { c.pop(false) }

// pop removes the element at an end of a list, or as many as args[2] says, and sends them.
func (c *Ctx) pop(front bool) {
	count, counted := int64(1), len(c.args) > 2
	if len(c.args) > 3 {
		c.errArity()
		return
	}
	if counted {
		var ok bool
		if count, ok = c.integerOr(2, 0, errNotPositive); !ok {
			return
		}
	}
	l, found, ok := c.changeList(1)
	switch {
	case !ok:
	case !found && counted:
		c.reply.NullArray()
	case !found:
		c.reply.Null()
	case !counted:
		c.reply.Bulk(l.End(front))
		c.cutEnd(&l, 1, front)
		c.notifyCut(&l, popEvent(front), c.args[1])
	default:
		c.sendPopped(&l, c.args[1], count, front)
	}
}

// sendPopped removes count elements from an end of the list at a key, or all if there are fewer, and sends them.
func (c *Ctx) sendPopped(l *store.List, name []byte, count int64, front bool) {
	n := int(min(count, int64(l.Len())))
	from := 0
	if !front {
		from = l.Len() - 1
	}
	c.sendElements(l, from, n, !front)
	if n > 0 {
		c.cutEnd(l, n, front)
		c.notifyCut(l, popEvent(front), name)
	}
}

// cutEnd removes n elements from an end of a list.
func (c *Ctx) cutEnd(l *store.List, n int, front bool) {
	from := 0
	if !front {
		from = l.Len() - n
	}
	l.Cut(from, n)
}

// side parses args[i] as an end of a list, or sends the error and returns ok false.
func (c *Ctx) side(i int) (front, ok bool) {
	switch {
	case c.is(i, "LEFT"):
		return true, true
	case c.is(i, "RIGHT"):
		return false, true
	}
	c.err(errSyntax)
	return false, false
}

// popping is what BLPOP, LMPOP and their like are to take from the first of several lists.
type popping struct {
	front   bool
	counted bool  // send an array of elements instead of one
	count   int64 // at most so many
}

func blpop(c *Ctx) { c.popOrWait(1, len(c.args)-1, len(c.args)-1, popping{front: true, count: 1}) }
func brpop(c *Ctx) { c.popOrWait(1, len(c.args)-1, len(c.args)-1, popping{count: 1}) }

func lmpop(c *Ctx) {
	first, end, p, ok := c.parsePopArgs(1)
	if ok && !c.popFirst(first, end, p) {
		c.reply.NullArray()
	}
}

func blmpop(c *Ctx) {
	if first, end, p, ok := c.parsePopArgs(2); ok {
		c.popOrWait(first, end, 1, p)
	}
}

// parsePopArgs parses what LMPOP and BLMPOP are told, from the number of keys at args[i] on, or sends the error and returns ok false. The
// keys are args[first:end].
func (c *Ctx) parsePopArgs(i int) (first, end int, p popping, ok bool) {
	numKeys, ok := c.integerOr(i, 1, errNumKeys)
	if !ok {
		return 0, 0, p, false
	}
	if numKeys >= int64(len(c.args)-i-1) {
		c.err(errSyntax)
		return 0, 0, p, false
	}
	first, end = i+1, i+1+int(numKeys)
	p = popping{counted: true, count: 1}
	if p.front, ok = c.side(end); !ok {
		return 0, 0, p, false
	}
	rest := len(c.args) - end - 1
	if rest >= 2 && c.is(end+1, "COUNT") {
		if p.count, ok = c.integerOr(end+2, 1, errCountPositive); !ok {
			return 0, 0, p, false
		}
		rest -= 2
	}
	if rest > 0 {
		c.err(errSyntax)
		return 0, 0, p, false
	}
	return first, end, p, true
}

// popFirst pops from the first of the lists at args[first:end] that is there, and sends what it got. It returns false, with nothing
// sent, when there is none.
func (c *Ctx) popFirst(first, end int, p popping) (answered bool) {
	for i := first; i < end; i++ {
		l, found, ok := c.changeList(i)
		switch {
		case !ok:
			return true
		case found:
			c.sendPoppedFrom(&l, c.args[i], p)
			return true
		}
	}
	return false
}

// sendPoppedFrom pops from a list, and sends its key and what it got.
func (c *Ctx) sendPoppedFrom(l *store.List, name []byte, p popping) {
	pop := "RPOP"
	if p.front {
		pop = "LPOP"
	}
	c.reply.Array(2)
	c.reply.Bulk(name)
	if p.counted {
		n := min(p.count, int64(l.Len()))
		c.sendPopped(l, name, n, p.front)
		c.effect(pop, name, n)
		return
	}
	c.reply.Bulk(l.End(p.front))
	c.cutEnd(l, 1, p.front)
	c.notifyCut(l, popEvent(p.front), name)
	c.effect(pop, name)
}

// popOrWait is popFirst, and has the client wait when there is nothing. The timeout is args[timeout].
func (c *Ctx) popOrWait(first, end, timeout int, p popping) {
	until, ok := c.timeout(timeout, timeoutSeconds)
	if !ok || c.popFirst(first, end, p) {
		return
	}
	if !c.mayBlock() {
		c.reply.NullArray()
		return
	}
	c.block(blockOn{kind: store.KindList, keys: c.args[first:end], until: until, quiet: !p.counted, serve: func(c *Ctx, k store.Key) bool {
		l, found, err := c.db.List(k, c.now)
		if err != nil || !found {
			return false
		}
		c.sendPoppedFrom(&l, k.Name, p)
		return true
	}})
}

// moving says from which end of a list an element is taken, and to which end of another.
type moving struct{ fromFront, toFront bool }

// parseMoving parses args[3] and args[4] as the ends of lists, or sends the error and returns false.
func (c *Ctx) parseMoving() (m moving, ok bool) {
	if m.fromFront, ok = c.side(3); !ok {
		return m, false
	}
	m.toFront, ok = c.side(4)
	return m, ok
}

func lmove(c *Ctx) {
	if m, ok := c.parseMoving(); ok && !c.moveElement(m) {
		c.reply.Null()
	}
}

func rpopLPush(c *Ctx) {
	if !c.moveElement(moving{toFront: true}) {
		c.reply.Null()
	}
}

func blmove(c *Ctx) {
	if m, ok := c.parseMoving(); ok {
		c.moveOrWait(5, m)
	}
}

func brpopLPush(c *Ctx) { c.moveOrWait(3, moving{toFront: true}) }

// moveOrWait is moveElement, and has the client wait when there is no element. The timeout is args[timeout].
func (c *Ctx) moveOrWait(timeout int, m moving) {
	until, ok := c.timeout(timeout, timeoutSeconds)
	if !ok || c.moveElement(m) {
		return
	}
	if !c.mayBlock() {
		c.reply.Null()
		return
	}
	c.block(blockOn{kind: store.KindList, keys: c.args[1:2], until: until, quiet: true, serve: func(c *Ctx, _ store.Key) bool {
		return c.moveElement(m)
	}})
}

// moveElement takes an element from the list at args[1] to the one at args[2] and sends it, or sends an error. It returns false, with
// nothing sent, when the source is not there.
func (c *Ctx) moveElement(m moving) (answered bool) {
	source, found, ok := c.changeList(1)
	if !ok || !found {
		return !ok
	}
	from, to := c.key(1), c.key(2)
	if string(from.Name) == string(to.Name) {
		c.rotate(&source, m)
		return true
	}
	if _, _, ok = c.changeList(2); !ok {
		return true
	}
	// Finding the destination may have removed a key that was past its time, so the source is looked up anew.
	source, _, _ = c.changeList(1)
	c.scratch = append(c.scratch[:0], source.End(m.fromFront)...)
	c.cutEnd(&source, 1, m.fromFront)
	target, _, _ := c.changeList(2)
	c.quiet = false // what a served client adds is its own change
	target.Push(m.toFront, c.scratch)
	c.core.keys.Discount(1) // taking and adding are one change
	c.reply.Bulk(c.scratch)
	c.moved(&source, m)
	return true
}

// rotate moves an element of a list to an end of the same list, which is never empty in between.
func (c *Ctx) rotate(l *store.List, m moving) {
	c.scratch = append(c.scratch[:0], l.End(m.fromFront)...)
	c.quiet = false // what a served client adds is its own change
	l.Push(m.toFront, c.scratch)
	from := l.Len() - 1
	switch {
	case m.fromFront && m.toFront:
		from = 1
	case m.fromFront:
		from = 0
	case !m.toFront:
		from--
	}
	l.Cut(from, 1)
	c.reply.Bulk(c.scratch)
	c.moved(l, m)
}

// moved tells of a move from source, and declares it as an effect that waits for nothing.
func (c *Ctx) moved(source *store.List, m moving) {
	c.notify(config.EventList, pushEvent(m.toFront), c.args[2])
	c.notifyCut(source, popEvent(m.fromFront), c.args[1])
	side := func(front bool) string {
		if front {
			return "LEFT"
		}
		return "RIGHT"
	}
	c.effect("LMOVE", c.args[1], c.args[2], side(m.fromFront), side(m.toFront))
}
