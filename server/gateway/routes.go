package gateway

import (
	"strings"

	"headgate/server/command"
	"headgate/server/limits"
)

// route is what becomes of a command.
type route uint8

const (
	routeHere    route = iota // it is answered here
	routeLimiter              // its handler asks the upstream by scripts, see limits.Remote
	routeIncrex               // it is INCREX, which is asked by a script as limiters are
	routeKeys                 // it goes to the node that has its keys
	routeServer               // it goes to the upstream if that is a single server
	routeScript               // it runs what its client has written
	routeQueue                // it has what is queued run
	routeRefused
	routes = iota
)

// routeOf derives from a declaration what becomes of a command. Containers have no route.
func routeOf(cmd *command.Command, group command.Group) route {
	f := cmd.Flags
	switch {
	case f&command.HomeOnly != 0, f&command.Blocking != 0, group == command.GroupPubSub:
		return routeRefused
	case f&command.RunsQueue != 0:
		return routeQueue
	case group == command.GroupThrottle:
		return routeLimiter
	case f&command.UnknownUpstream != 0:
		return routeIncrex
	case group == command.GroupScripting:
		return routeScript
	case hasKeys(cmd):
		return routeKeys
	case f&(command.Write|command.ReadOnly) != 0 && f&command.Admin == 0:
		return routeServer
	}
	return routeHere
}

// hasKeys reports whether a command names keys.
func hasKeys(cmd *command.Command) bool {
	for _, k := range cmd.Keys {
		if k.Access != command.NotKey {
			return true
		}
	}
	return false
}

// Decorate returns the declarations of a native server as a gateway has them: with other handlers where that is the upstream's.
func (g *Gateway) Decorate(groups [][]*command.Command) [][]*command.Command {
	decorated := make([][]*command.Command, len(groups))
	for i, group := range groups {
		for _, cmd := range group {
			decorated[i] = append(decorated[i], g.decorate(cmd, cmd.Group))
		}
	}
	return decorated
}

// decorate is Decorate for a command, or a sub-command of a command of this group.
func (g *Gateway) decorate(declared *command.Command, group command.Group) *command.Command {
	cmd := *declared
	if cmd.Sub != nil {
		cmd.Sub = make([]*command.Command, len(declared.Sub))
		for i, sub := range declared.Sub {
			cmd.Sub[i] = g.decorate(sub, group)
			cmd.Flags |= cmd.Sub[i].Flags & command.Deferring
		}
	}
	if cmd.Handler == nil {
		return &cmd
	}
	here := cmd.Handler
	switch routeOf(declared, group) {
	case routeHere:
		if cmd.Flags&command.RunsInMulti != 0 && group == command.GroupTransactions {
			cmd.Flags |= command.Deferring // what it answers follows what is under way
		}
		if cmd.Flags&command.ChoosesDatabase != 0 {
			cmd.Handler = g.chooseDatabase(here)
		}
		return &cmd
	case routeLimiter:
		if cmd.Flags&(command.Write|command.ReadOnly) == 0 || cmd.Flags&command.HomeOnly != 0 {
			return &cmd // of what was counted here
		}
	case routeIncrex:
		cmd.Handler = g.increx
	case routeKeys:
		cmd.Handler = g.passByKeys
		if cmd.Flags&command.ReadsOtherKeys != 0 {
			cmd.Handler = g.passSort
		}
	case routeServer:
		cmd.Handler = g.passToServer
	case routeScript:
		cmd.Handler = g.passScript
	case routeQueue:
		cmd.Handler = g.runTransaction(here)
	case routeRefused:
		cmd.Handler = refuse
		if cmd.Flags&command.Blocking != 0 && declared.Keys != nil {
			cmd.Handler = g.passUnlessBlocking
		}
		cmd.Flags &^= command.Blocking
	}
	cmd.Flags |= command.Deferring
	if !cmd.AsksForRoom() {
		cmd.Flags &^= command.DenyOOM // what it needs is the upstream's memory
	}
	return &cmd
}

// refuse answers a command that cannot be served while the keys lie elsewhere.
func refuse(c *command.Ctx) { c.Err(notServed(c.Cmd)) }

// notServed is the error for a command that cannot be served while the keys lie elsewhere.
func notServed(cmd *command.Command) string { return limits.NotServed(nameOf(cmd)) }

// nameOf is a command's name as errors have it.
func nameOf(cmd *command.Command) string {
	return strings.ToUpper(strings.ReplaceAll(cmd.FullName, "|", " "))
}

// refuseBeforeCluster answers a command that a single server upstream could serve.
func refuseBeforeCluster(c *command.Ctx) {
	c.Err("ERR '" + nameOf(c.Cmd) + "' is not served while upstream is a cluster")
}

// chooseDatabase is the handler of a command that chooses a database: a cluster has but the first.
func (g *Gateway) chooseDatabase(here command.Handler) command.Handler {
	return func(c *command.Ctx) {
		before := c.Client.DB
		here(c)
		if g.Up.Cluster() && c.Client.DB.Index() != 0 {
			c.Client.DB = before
			c.Reply.Truncate(c.Reply.Len() - len("+OK\r\n"))
			c.Err("ERR '" + c.Cmd.Upper + "' is not served while upstream is a cluster, which has database 0 only")
		}
	}
}
