package scripted

import (
	"crypto/sha1" //nolint:gosec // it is what EVALSHA names scripts by
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed *.lua
var sources embed.FS

// Script is a script that commands of this package call.
type Script struct {
	Name string
	Text string
	SHA  string // by which EVALSHA knows it: the SHA-1 of Text in lower-case hex digits

	bySHA []byte // the word EVALSHA with what it names the script by, as a request has them
}

// The scripts, each of the files that it consists of. rate.lua and rate-lease.lua stand alone, since they are called most.
var (
	rateScript    = newScript("rate", "", "rate")
	counterScript = newScript("counter", "counter", "shared", "counter", "one")
	slicesScript  = newScript("slices", "slices", "shared", "slices", "one")
	logScript     = newScript("log", "log", "shared", "entries", "log", "one")
	leaseScript   = newScript("lease", "lease", "shared", "entries", "lease", "one")
	increxScript  = newScript("increx", "increx", "shared", "increx", "one")
	takeScript    = newScript("take", "", "shared", "bucket", "counter", "slices", "entries", "log", "lease", "take")
	grantScripts  = [...]*Script{
		ofRate:    newScript("rate-lease", "", "rate-lease"),
		ofCounter: newScript("counter-lease", "counter", "shared", "counter", "grant"),
		ofSlices:  newScript("slices-lease", "slices", "shared", "slices", "grant"),
	}
	giveBackScript = newScript("giveback", "", "shared", "giveback")
	resetScript    = newScript("reset", "", "shared", "reset")
	loadScript     = newScript("load", "", "shared", "state", "load")
	swapScript     = newScript("swap", "", "shared", "state", "swap")
)

// Scripts returns all scripts, for those who load them beforehand. They do not change.
func Scripts() []*Script {
	return []*Script{
		rateScript, counterScript, slicesScript, logScript, leaseScript, increxScript, takeScript, grantScripts[ofRate], grantScripts[ofCounter],
		grantScripts[ofSlices], giveBackScript, resetScript, loadScript, swapScript,
	}
}

// newScript puts a script together. decide is the part that one.lua or grant.lua runs, or empty.
func newScript(name, decide string, files ...string) *Script {
	var parts []string
	for _, file := range files {
		if file == "one" || file == "grant" {
			parts = append(parts, "local decide = "+decide+"\n")
		}
		source, err := sources.ReadFile(file + ".lua")
		if err != nil {
			panic("scripted: " + err.Error())
		}
		parts = append(parts, string(source))
	}
	s := &Script{Name: name, Text: strings.Join(parts, "")} // every server holds it, so nothing is left over
	sum := sha1.Sum([]byte(s.Text))                         //nolint:gosec // see above
	s.SHA = hex.EncodeToString(sum[:])
	s.bySHA = appendText(appendText(nil, "EVALSHA"), s.SHA)
	return s
}
