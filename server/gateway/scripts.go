package gateway

import (
	"crypto/sha1" //nolint:gosec // it is what EVALSHA names scripts by
	"encoding/hex"
	"strings"

	"headgate/server/command"
	"headgate/server/upstream"
)

// Errors of scripts that clients have written.
const (
	errScripts     = "NOPERM scripts through a gateway need ~* and +@all"
	errScriptNoKey = "ERR a script without keys is not served while upstream is a cluster"
)

// passScript is the handler of commands that run what their clients have written, or look after that. The upstream would run it with the
// gateway's rights.
func (g *Gateway) passScript(c *command.Ctx) {
	if c.Client.Guarded && g.userOf(c.Client) == nil && !c.Client.User.MayAllWithKeys() {
		c.Err(errScripts)
		return
	}
	slot, ok := g.slotOf(c)
	switch {
	case !ok:
		c.Err(errCrossSlot)
	case c.Cmd.Flags&command.KeepsScript != 0:
		g.pass(c, slot, keptScript{text: string(c.Args[len(c.Args)-1])})
	case slot < 0 && g.Up.Cluster() && c.Cmd.Runs == command.NoProgram:
		refuse(c)
	case slot < 0 && g.Up.Cluster() && string(c.Args[2]) == "0": // what is no number of keys at all is refused by any node
		c.Err(errScriptNoKey)
	default:
		k := g.newPassed(c, slot, passed{})
		if c.Cmd.Runs == command.ScriptSHA {
			k.way.Script = g.kept.of(c.Args[1])
		}
		g.send(c, k)
	}
}

// keptScript is a command that has a script be known. One node of a cluster takes it; the others are told when they are asked for it.
type keptScript struct {
	passed
	text string
}

func (s keptScript) tell(k *call, c *command.Ctx) {
	if len(k.reply) > 0 && k.reply[0] == '$' {
		k.g.kept.keep(s.text)
	}
	s.passed.tell(k, c)
}

// What is kept of clients' scripts, for nodes that do not know them. Beyond either, those go that came first.
const (
	keptScriptsMax     = 1000
	keptScriptBytesMax = 8 << 20
)

// keptScripts are scripts that clients have loaded. The executor's lock guards them.
type keptScripts struct {
	bySHA map[string]*upstream.Script
	order []*upstream.Script
	bytes int
}

// of returns the script that a client calls by its SHA-1, or nil if it is not kept.
func (s *keptScripts) of(sha []byte) *upstream.Script {
	if len(s.bySHA) == 0 || len(sha) != 2*sha1.Size {
		return nil
	}
	return s.bySHA[strings.ToLower(string(sha))]
}

// keep keeps a script's text.
func (s *keptScripts) keep(text string) {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	sha := hex.EncodeToString(sum[:])
	if s.bySHA[sha] != nil || len(text) > keptScriptBytesMax {
		return
	}
	if s.bySHA == nil {
		s.bySHA = make(map[string]*upstream.Script)
	}
	added := &upstream.Script{Name: "a client's", Text: text, SHA: sha}
	s.bySHA[sha], s.order, s.bytes = added, append(s.order, added), s.bytes+len(text)
	for len(s.order) > keptScriptsMax || s.bytes > keptScriptBytesMax {
		oldest := s.order[0]
		s.order[0], s.order = nil, s.order[1:]
		s.bytes -= len(oldest.Text)
		delete(s.bySHA, oldest.SHA)
	}
}
