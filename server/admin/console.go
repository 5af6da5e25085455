package admin

import (
	"headgate/server/access"
	"headgate/server/exec"
	"headgate/server/journal"
	"headgate/server/limits"
	"headgate/server/observe"
	"headgate/server/pubsub"
)

// Console is where clients and operators see to connections and to the server itself: CLIENT, CONFIG, DEBUG and their like.
type Console struct {
	Recorder *observe.Recorder
	Hub      *pubsub.Hub
	Access   *access.Access
	Limits   *limits.Limits
	Exec     *exec.Executor
	Journal  *journal.Journal
}
