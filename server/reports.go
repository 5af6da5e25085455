package server

import "headgate/server/acl"

// Reports tell how the server does: INFO, MEMORY, and what the HTTP port answers with.
type Reports struct {
	*Core
	recorder *Recorder
	hub      *Hub
	access   *Access
	limits   *Limits
	exec     *Executor
	scripts  *Scripts
	journal  *Journal
	fronts   *Fronts

	http    httpPort
	samples samples
}

// declarations are those of INFO and MEMORY.
func (r *Reports) declarations() []*Command {
	return []*Command{
		{
			Name: "info", Group: GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of commands used",
			Summary: "Describe the server's state and count what it has done.",
			Arity:   -1, Flags: Loading | Stale, Categories: acl.Dangerous,
			Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Args: []Arg{str("section").multi().opt()}, Reply: ReplyBulk | ReplyVerbatim, Handler: r.info,
		},
		r.memoryCommand(),
	}
}
