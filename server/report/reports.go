package report

import (
	"headgate/server/access"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/front"
	"headgate/server/gateway"
	"headgate/server/httpcheck"
	"headgate/server/journal"
	"headgate/server/limits"
	"headgate/server/observe"
	"headgate/server/pubsub"
	"headgate/server/replication"
	"headgate/server/rls"
	"headgate/server/scripting"
)

// Reports tell how the server does: INFO, MEMORY, and what the HTTP port answers with.
type Reports struct {
	*command.Core
	Recorder *observe.Recorder
	Hub      *pubsub.Hub
	Access   *access.Access
	Limits   *limits.Limits
	Exec     *exec.Executor
	Scripts  *scripting.Scripts
	Journal  *journal.Journal
	Fronts   *front.Fronts
	Gateway  *gateway.Gateway // nil: keys are kept here
	Replica  *replication.Replica
	Checks   *httpcheck.Port
	Envoy    *rls.Port

	HTTP    httpPort
	Samples samples
}

// Declarations are those of INFO, MEMORY and RL.UPSTREAM.
func (r *Reports) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "info", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of commands used",
			Summary: "Describe the server's state and count what it has done.",
			Arity:   -1, Flags: command.Loading | command.Stale, Categories: acl.Dangerous,
			Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			Args: []command.Arg{command.Str("section").Multi().Opt()}, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: r.info,
		},
		r.memoryCommand(),
		r.upstreamCommand(),
	}
}
