package gateway

import (
	"crypto/sha1" //nolint:gosec // it is what EVALSHA names scripts by
	"encoding/hex"
	"strings"

	"headgate/internal/respcmd"
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
		refuseBeforeCluster(c)
	case c.Cmd.Flags&command.ForgetsScripts != 0:
		g.pass(c, slot, forgottenScripts{})
	case slot < 0 && g.Up.Cluster():
		refuseKeyless(c)
	default:
		k := g.newPassed(c, slot, passed{})
		k.up.Program = true
		if c.Cmd.Runs == command.ScriptSHA {
			g.healScript(c, k)
		}
		g.send(c, k)
	}
}

// refuseKeyless refuses a script without keys. A node would take some of what is no number of keys for one, and name another node for the keys.
func refuseKeyless(c *command.Ctx) {
	notInteger := command.ErrNotInteger
	if c.Cmd.Runs == command.FunctionName {
		notInteger = command.ErrBadKeyCount
	}
	if _, ok := c.KeyCount(2, notInteger); ok {
		c.Err(errScriptNoKey)
	}
}

// healScript sees to it that the call of a script by its SHA-1 is answered by a node that does not know it, too, if it is kept here. Within
// a transaction nobody could load it, so it is named by its text there.
func (g *Gateway) healScript(c *command.Ctx, k *call) {
	script := g.kept.of(c.Args[1])
	switch {
	case script == nil:
	case g.collecting == nil:
		k.up.Script = script
	default:
		words := append([][]byte{[]byte(strings.Replace(c.Cmd.Upper, "SHA", "", 1)), []byte(script.Text)}, c.Args[2:]...)
		k.up.Request = respcmd.Append(k.up.Request[:0], words...)
	}
}

// forgottenScripts is a command that has scripts be known no longer.
type forgottenScripts struct{ passed }

func (s forgottenScripts) writeReply(k *call, c *command.Ctx) {
	if len(k.reply) > 0 && k.reply[0] == '+' {
		k.g.kept = keptScripts{}
	}
	s.passed.writeReply(k, c)
}

// keptScript is a command that has a script be known. One node of a cluster takes it; the others are told when they are asked for it.
type keptScript struct {
	passed
	text string
}

func (s keptScript) writeReply(k *call, c *command.Ctx) {
	if len(k.reply) > 0 && k.reply[0] == '$' {
		k.g.kept.keep(s.text)
	}
	s.passed.writeReply(k, c)
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
