package command

// Waiter is a client's wait that another part of the server looks after, as limiters do for calls that would rather wait than be limited. Its
// methods are called with the executor's lock held.
type Waiter interface {
	Sized
	// Over tells that the wait has ended, in whatever way: the client has been answered, has given up, or has gone.
	Over()
	// Late sends the reply of a client whose wait is ended from outside as if its time were over. The context is the client's.
	Late(c *Ctx)
	// Call returns the command that waits, with its arguments, which are a copy.
	Call() (cmd *Command, args [][]byte)
	// Awaits names what the client waits for, and until when at the latest, in ns.
	Awaits() (what string, until int64)
}

// Wait has the client wait, in place of a reply, where MayBlock allows it. Its next commands wait too.
func (c *Ctx) Wait(w Waiter) { c.Core.Hooks.Wait(c, w) }

// Serving is an attempt at serving a client that waits, with the context of the command that waits: the client, its reply, its database, its
// arguments. What it changes is a unit by itself.
type Serving struct {
	Client *Client
	Waiter Waiter
	// Try sends the reply and returns true, which ends the wait; or it sends nothing, and the client goes on waiting.
	Try func(c *Ctx) bool
}

// Serve makes an attempt at serving a client that waits, and reports whether its wait is over. The context is any, and is afterwards that of
// nobody.
func (c *Ctx) Serve(s Serving) bool { return c.Core.Hooks.ServeWaiter(c, s) }

// CopyArgs returns a copy of a command's arguments that is two allocations, however many they are.
func CopyArgs(args [][]byte) [][]byte {
	n := 0
	for _, a := range args {
		n += len(a)
	}
	buf, all := make([]byte, 0, n), make([][]byte, len(args))
	for i, a := range args {
		begin := len(buf)
		buf = append(buf, a...)
		all[i] = buf[begin:len(buf):len(buf)]
	}
	return all
}
