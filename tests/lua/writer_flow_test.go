package lua

// coroutine makes or uses one.
func (w *writer) coroutine() {
	name := w.fresh()
	switch w.IntN(5) {
	case 0, 1:
		make := w.pick("create", "wrap")
		w.line("local " + name + " = coroutine." + make + "(" + w.function() + ")")
		w.names = append(w.names, name)
		call := "pcall(" + name
		if make == "create" {
			call = "coroutine.resume(" + name
		}
		for range w.IntN(4) {
			w.line("note(" + call + w.pick("", ", "+w.list(2)) + "))")
		}
	case 2:
		count := w.fresh()
		w.line("local " + count + " = 0")
		w.line("for " + name + ", " + w.fresh() + " in coroutine.wrap(" + w.function() + ") do " + count + " = " + count + " + 1 if " + count + " > 3 then break end")
		w.loop(name)
		w.line("end")
	case 3:
		w.line("coroutine.yield(" + w.pick("", w.list(2)) + ")")
	case 4:
		w.line("note(pcall(coroutine." + w.pick("resume", "status") + ", " + w.variable() + ", " + w.expr(1) + "))")
	}
}

func (w *writer) ofCoroutine(d int) string {
	switch w.IntN(8) {
	case 0:
		return "coroutine.running()"
	case 1:
		return "coroutine.resume(" + w.variable() + ", " + w.expr(d) + ")"
	case 2:
		return "coroutine.wrap(" + w.function() + ")(" + w.expr(d) + ")"
	case 3:
		return "coroutine.status(coroutine.create(" + w.variable() + "))"
	case 4:
		return "(coroutine.yield(" + w.expr(d) + "))"
	}
	return "coroutine.yield(" + w.pick("", w.expr(d), w.expr(d)+", "+w.expr(0)) + ")"
}

// caught is a statement that catches errors.
func (w *writer) caught() {
	switch w.IntN(5) {
	case 0, 1: // A handler that calls more than these may have the reference handle errors of errors for longer than one could wait for.
		handler := w.pick("note", "tostring", "nil", "1", "function(e) return e, 2 end", "function(e) error(e) end", "function(e) note(e) return {a = e} end")
		w.line("note(xpcall(" + w.function() + ", " + handler + "))")
	case 2:
		a, b := w.fresh(), w.fresh()
		w.line("local " + a + ", " + b + " = pcall(" + w.function() + ", " + w.list(2) + ")")
		w.names = append(w.names, a, b)
	case 3:
		w.line("note(select('#', pcall(" + w.function() + ")))")
	case 4:
		w.line(w.raising(1))
	}
}

// raising is a call that may raise an error.
func (w *writer) raising(d int) string {
	switch w.IntN(6) {
	case 0:
		return "error(" + w.expr(d) + ")"
	case 1:
		return "error(" + w.expr(d) + ", " + w.pick("0", "1", "2", "3", "nil") + ")"
	case 2:
		return "assert(" + w.list(3) + ")"
	case 3:
		return "pcall(error, " + w.list(2) + ")"
	case 4:
		return "pcall(pcall, " + w.list(2) + ")"
	}
	return "pcall(assert, " + w.list(2) + ")"
}

// oddLoop is a loop over numbers that may be none, or an iterator that is none.
func (w *writer) oddLoop() {
	name, count := w.fresh(), w.fresh()
	from := w.pick("0.1", "1", "-1", "2^53", "1e15", "'0x2'", "0/0", "1/0", "-1/0", "3", w.expr(0))
	to := w.pick("0.5", "4", "-2", "2^53 + 3", "1e15 + 2", "'1e1'", "0/0", "1/0", "-1/0", "3", w.expr(0))
	step := w.pick("", "", ", 1", ", 0.1", ", -1", ", -0.5", ", 0", ", 1e308", ", '2'", ", 1/0", ", 0/0", ", "+w.expr(0))
	head := "for " + name + " = " + from + ", " + to + step
	if w.IntN(4) == 0 {
		head = "for " + name + " in " + w.pick("next, "+w.constructorOfItems(), w.variable(), "ipairs("+w.variable()+")", "('a,b,c'):gmatch('[^,]')", "many, 1, 2", w.function())
	}
	w.line("local " + count + " = 0")
	w.line(head + " do " + count + " = " + count + " + 1 note(" + name + ") if " + count + " > 4 then break end")
	w.loop(name)
	w.line("end")
}
