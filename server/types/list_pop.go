package types

import (
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// This file: the commands that take elements from the ends of lists, and those that wait for one.

func lpop(c *command.Ctx) { pop(c, true) }
func rpop(c *command.Ctx) { pop(c, false) }

// pop removes the element at an end of a list, or as many as args[2] says, and sends them.
func pop(c *command.Ctx, front bool) {
	count, counted := int64(1), len(c.Args) > 2
	if len(c.Args) > 3 {
		c.ErrArity()
		return
	}
	if counted {
		var ok bool
		if count, ok = integerOr(c, 2, 0, command.ErrNotPositive); !ok {
			return
		}
	}
	l, found, ok := c.ChangeList(1)
	switch {
	case !ok:
	case !found && counted:
		c.Reply.NullArray()
	case !found:
		c.Reply.Null()
	case !counted:
		c.Reply.Bulk(l.End(front))
		cutEnd(&l, 1, front)
		notifyCut(c, &l, popEvent(front), c.Args[1])
	default:
		sendPopped(c, &l, c.Args[1], count, front)
	}
}

// sendPopped removes count elements from an end of the list at a key, or all if there are fewer, and sends them.
func sendPopped(c *command.Ctx, l *store.List, name []byte, count int64, front bool) {
	n := int(min(count, int64(l.Len())))
	from := 0
	if !front {
		from = l.Len() - 1
	}
	sendElements(c, l, from, n, !front)
	if n > 0 {
		cutEnd(l, n, front)
		notifyCut(c, l, popEvent(front), name)
	}
}

// cutEnd removes n elements from an end of a list.
func cutEnd(l *store.List, n int, front bool) {
	from := 0
	if !front {
		from = l.Len() - n
	}
	l.Cut(from, n)
}

// side parses args[i] as an end of a list, or sends the error and returns ok false.
func side(c *command.Ctx, i int) (front, ok bool) {
	switch {
	case c.Is(i, "LEFT"):
		return true, true
	case c.Is(i, "RIGHT"):
		return false, true
	}
	c.Err(command.ErrSyntax)
	return false, false
}

// popping is what BLPOP, LMPOP and their like are to take from the first of several lists.
type popping struct {
	front   bool
	counted bool  // send an array of elements instead of one
	count   int64 // at most so many
}

func blpop(c *command.Ctx) {
	popOrWait(c, 1, len(c.Args)-1, len(c.Args)-1, popping{front: true, count: 1})
}
func brpop(c *command.Ctx) { popOrWait(c, 1, len(c.Args)-1, len(c.Args)-1, popping{count: 1}) }

func lmpop(c *command.Ctx) {
	first, end, p, ok := parsePopArgs(c, 1)
	if ok && !popFirst(c, first, end, p) {
		c.Reply.NullArray()
	}
}

func blmpop(c *command.Ctx) {
	if first, end, p, ok := parsePopArgs(c, 2); ok {
		popOrWait(c, first, end, 1, p)
	}
}

// parsePopArgs parses what LMPOP and BLMPOP are told, from the number of keys at args[i] on, or sends the error and returns ok false. The
// keys are args[first:end].
func parsePopArgs(c *command.Ctx, i int) (first, end int, p popping, ok bool) {
	numKeys, ok := integerOr(c, i, 1, errNumKeys)
	if !ok {
		return 0, 0, p, false
	}
	if numKeys >= int64(len(c.Args)-i-1) {
		c.Err(command.ErrSyntax)
		return 0, 0, p, false
	}
	first, end = i+1, i+1+int(numKeys)
	p = popping{counted: true, count: 1}
	if p.front, ok = side(c, end); !ok {
		return 0, 0, p, false
	}
	rest := len(c.Args) - end - 1
	if rest >= 2 && c.Is(end+1, "COUNT") {
		if p.count, ok = integerOr(c, end+2, 1, errCountPositive); !ok {
			return 0, 0, p, false
		}
		rest -= 2
	}
	if rest > 0 {
		c.Err(command.ErrSyntax)
		return 0, 0, p, false
	}
	return first, end, p, true
}

// popFirst pops from the first of the lists at args[first:end] that is there, and sends what it got. It returns false, with nothing
// sent, when there is none.
func popFirst(c *command.Ctx, first, end int, p popping) (answered bool) {
	for i := first; i < end; i++ {
		l, found, ok := c.ChangeList(i)
		switch {
		case !ok:
			return true
		case found:
			sendPoppedFrom(c, &l, c.Args[i], p)
			return true
		}
	}
	return false
}

// sendPoppedFrom pops from a list, and sends its key and what it got.
func sendPoppedFrom(c *command.Ctx, l *store.List, name []byte, p popping) {
	pop := "RPOP"
	if p.front {
		pop = "LPOP"
	}
	c.Reply.Array(2)
	c.Reply.Bulk(name)
	if p.counted {
		n := min(p.count, int64(l.Len()))
		sendPopped(c, l, name, n, p.front)
		c.Effect(pop, name, n)
		return
	}
	c.Reply.Bulk(l.End(p.front))
	cutEnd(l, 1, p.front)
	notifyCut(c, l, popEvent(p.front), name)
	c.Effect(pop, name)
}

// popOrWait is popFirst, and has the client wait when there is nothing. The timeout is args[timeout].
func popOrWait(c *command.Ctx, first, end, timeout int, p popping) {
	until, ok := c.Timeout(timeout, command.TimeoutSeconds)
	if !ok || popFirst(c, first, end, p) {
		return
	}
	if !c.MayBlock() {
		c.Reply.NullArray()
		return
	}
	c.Block(command.BlockOn{Kind: store.KindList, Keys: c.Args[first:end], Until: until, Quiet: !p.counted, Serve: func(c *command.Ctx, k store.Key) bool {
		l, found, err := c.DB.List(k, c.Now)
		if err != nil || !found {
			return false
		}
		sendPoppedFrom(c, &l, k.Name, p)
		return true
	}})
}

// moving says from which end of a list an element is taken, and to which end of another.
type moving struct{ fromFront, toFront bool }

// parseMoving parses args[3] and args[4] as the ends of lists, or sends the error and returns false.
func parseMoving(c *command.Ctx) (m moving, ok bool) {
	if m.fromFront, ok = side(c, 3); !ok {
		return m, false
	}
	m.toFront, ok = side(c, 4)
	return m, ok
}

func lmove(c *command.Ctx) {
	if m, ok := parseMoving(c); ok && !moveElement(c, m) {
		c.Reply.Null()
	}
}

func rpopLPush(c *command.Ctx) {
	if !moveElement(c, moving{toFront: true}) {
		c.Reply.Null()
	}
}

func blmove(c *command.Ctx) {
	if m, ok := parseMoving(c); ok {
		moveOrWait(c, 5, m)
	}
}

func brpopLPush(c *command.Ctx) { moveOrWait(c, 3, moving{toFront: true}) }

// moveOrWait is moveElement, and has the client wait when there is no element. The timeout is args[timeout].
func moveOrWait(c *command.Ctx, timeout int, m moving) {
	until, ok := c.Timeout(timeout, command.TimeoutSeconds)
	if !ok || moveElement(c, m) {
		return
	}
	if !c.MayBlock() {
		c.Reply.Null()
		return
	}
	c.Block(command.BlockOn{Kind: store.KindList, Keys: c.Args[1:2], Until: until, Quiet: true, Serve: func(c *command.Ctx, _ store.Key) bool {
		return moveElement(c, m)
	}})
}

// moveElement takes an element from the list at args[1] to the one at args[2] and sends it, or sends an error. It returns false, with
// nothing sent, when the source is not there.
func moveElement(c *command.Ctx, m moving) (answered bool) {
	source, found, ok := c.ChangeList(1)
	if !ok || !found {
		return !ok
	}
	from, to := c.Key(1), c.Key(2)
	if string(from.Name) == string(to.Name) {
		rotate(c, &source, m)
		return true
	}
	if _, _, ok = c.ChangeList(2); !ok {
		return true
	}
	// Finding the destination may have removed a key that was past its time, so the source is looked up anew.
	source, _, _ = c.ChangeList(1)
	c.Scratch = append(c.Scratch[:0], source.End(m.fromFront)...)
	cutEnd(&source, 1, m.fromFront)
	target, _, _ := c.ChangeList(2)
	c.Quiet = false // what a served client adds is its own change
	target.Push(m.toFront, c.Scratch)
	c.Core.Keys.Discount(1) // taking and adding are one change
	c.Reply.Bulk(c.Scratch)
	moved(c, &source, m)
	return true
}

// rotate moves an element of a list to an end of the same list, which is never empty in between.
func rotate(c *command.Ctx, l *store.List, m moving) {
	c.Scratch = append(c.Scratch[:0], l.End(m.fromFront)...)
	c.Quiet = false // what a served client adds is its own change
	l.Push(m.toFront, c.Scratch)
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
	c.Reply.Bulk(c.Scratch)
	moved(c, l, m)
}

// moved tells of a move from source, and declares it as an effect that waits for nothing.
func moved(c *command.Ctx, source *store.List, m moving) {
	c.Notify(config.EventList, pushEvent(m.toFront), c.Args[2])
	notifyCut(c, source, popEvent(m.fromFront), c.Args[1])
	side := func(front bool) string {
		if front {
			return "LEFT"
		}
		return "RIGHT"
	}
	c.Effect("LMOVE", c.Args[1], c.Args[2], side(m.fromFront), side(m.toFront))
}
