package replication

import (
	"errors"
	"net"
	"slices"
	"strings"

	"headgate/server/command"
	"headgate/server/config"
)

// A server that follows itself would wait for ever for data that nobody has, and in a loop of replicas, each of which follows the next, nobody is
// the primary, though all links are up. What gives the first away at once is its address; by another name, or behind a proxy, it learns so in the
// handshake, in which it names its run ID as one of its capabilities: servers pass over those that they do not know. A headgate answers that
// with its lineage, and refuses to be followed by a server that it follows itself.

const (
	capaRunID     = "run-id:" // and the run ID of the server that asks
	errAsksItself = "ERR the server that asks is this one: a server cannot follow itself"
	errOwnAddress = "ERR this is the server's own address: a server cannot follow itself"
	errFollowsYou = "ERR this server follows the one that asks, directly or through others"

	maxLineage = 16 // servers that a lineage names
)

// errLoop is why a server cannot be followed that follows this one.
var errLoop = errors.New("it follows this server, directly or through others, and a loop of replicas has no primary: run REPLICAOF NO ONE on the one that is to be the primary")

// errMoved is why replicas are closed whose lineage is another one now.
var errMoved = errors.New("this server follows another one now: it has to ask again, so that a loop is noticed")

// lineage is this server's run ID, and behind it those of the servers that it follows, directly and through others, as far as they say so. The
// caller holds the executor's lock.
func (r *Replica) lineage() []string {
	all := append([]string{r.RunID}, r.above...)
	return all[:min(len(all), maxLineage)]
}

// readLineage reads what a primary answers to capaRunID; nothing, if it is none that says so.
func readLineage(reply string) (all []string) {
	words := strings.Fields(reply)
	for _, word := range words[min(len(words), 1):] {
		if id, ok := strings.CutPrefix(word, capaRunID); ok && isID(id) && len(all) < maxLineage {
			all = append(all, id)
		}
	}
	return all
}

// introduced notes the run ID of a server that wants to follow this one, and answers with the lineage, or sends the error and returns false.
func (r *Replica) introduced(c *command.Ctx, f *feed, id string) (answer string, ok bool) {
	if id == r.RunID {
		c.Err(errAsksItself)
		return "", false
	}
	f.runID, f.lineage = id, r.lineage()
	for _, each := range f.lineage {
		answer += " " + capaRunID + each
	}
	return answer, true
}

// admitsAsker reports whether a server that wants to follow this one may, or sends the error: neither if this one follows it, nor if it was told
// another lineage than it would be told now.
func (r *Replica) admitsAsker(c *command.Ctx) bool {
	f, _ := c.Client.Replica.(*feed)
	switch {
	case f == nil || f.runID == "":
		return true
	case r.follow != nil && slices.Contains(r.above, f.runID):
		c.Err(errFollowsYou)
		return false
	case !slices.Equal(f.lineage, r.lineage()):
		c.Err(errNotConnected)
		return false
	}
	return true
}

// dropMoved has the replicas closed that were told another lineage, so that they ask again. Others can be in no loop that is noticed. The caller holds
// the executor's lock.
func (p *Primary) dropMoved() {
	for _, f := range p.feeds {
		if f.runID != "" {
			f.drop(errMoved)
		}
	}
}

// isSelf reports whether a connection leads to this server: to a port on which it listens, of an address of this machine.
func isSelf(nc net.Conn, cfg *config.Config) bool {
	remote, ok := nc.RemoteAddr().(*net.TCPAddr)
	local, ok2 := nc.LocalAddr().(*net.TCPAddr)
	return ok && ok2 && remote.IP.Equal(local.IP) && (remote.Port == local.Port || cfg.ListensOn(remote.IP, remote.Port, true))
}
