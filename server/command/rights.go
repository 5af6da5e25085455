package command

import (
	"strings"

	"headgate/server/acl"
)

// aclScratch is memory for the command line that package acl is asked about.
type aclScratch struct {
	call    acl.Call
	indexes []int // of its keys
}

// keptKeys bounds the keys that there is memory for between two calls: there is hardly a command with more.
const keptKeys = 1 << 10

// ACLCall returns a command line as package acl judges it. It is valid until the next call.
func (c *Ctx) ACLCall(cmd *Command, args [][]byte) *acl.Call {
	scratch := &c.Core.aclScratch
	if cap(scratch.indexes) > keptKeys || cap(scratch.call.Keys) > keptKeys {
		*scratch = aclScratch{}
	}
	call := &scratch.call
	call.Command, call.Args = cmd.ID, args
	call.Keys, call.Channels = call.Keys[:0], call.Channels[:0]
	indexes := scratch.indexes[:0]
	for _, k := range cmd.Keys {
		if k.Access == NotKey {
			continue
		}
		indexes = k.Find(indexes[:0], args)
		access := rightsFor(k.AccessOf(args))
		for _, i := range indexes {
			call.Keys = append(call.Keys, acl.Key{Arg: i, Access: access})
		}
	}
	scratch.indexes = indexes
	call.Channels = cmd.Channels.Find(call.Channels, len(args))
	return call
}

// rightsFor returns the rights to a key that its access flags ask for.
func rightsFor(access string) (rights acl.Access) {
	for name := range strings.FieldsSeq(access) {
		switch name {
		case "ACCESS":
			rights |= acl.ReadKey
		case "INSERT", "DELETE", "UPDATE":
			rights |= acl.WriteKey
		}
	}
	return rights
}

// MayReadEveryKey reports whether the client may use the command with keys that are only known once it runs.
func (c *Ctx) MayReadEveryKey() bool {
	return !c.Client.Guarded || c.Client.User.MayWithEveryKey(c.ACLCall(c.Cmd, c.Args), acl.ReadKey)
}
