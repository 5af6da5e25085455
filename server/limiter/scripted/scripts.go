package scripted

import (
	"crypto/sha1" //nolint:gosec // it is what EVALSHA names scripts by
	"embed"
	"encoding/hex"
	"strings"
	"sync"

	"headgate/internal/respcmd"
)

//go:embed *.lua
var sources embed.FS

// Script is a script that commands of this package call. It is assembled when something of it is asked for first, since a server without an
// upstream calls none. It may be used by several goroutines.
type Script struct {
	Name string

	decide string   // the part that one.lua or grant.lua runs, or empty
	files  []string // it consists of, without .lua
	joint  *Script  // runs several of its calls, or nil
	of     *Script  // it is the joint one of, or nil

	once      sync.Once
	text, sha string
	bySHA     []byte // the word EVALSHA with what it names the script by, as a request has them
}

// Text is the script's source.
func (s *Script) Text() string { return s.made().text }

// SHA is what EVALSHA knows it by: the SHA-1 of its text in lower-case hex digits.
func (s *Script) SHA() string { return s.made().sha }

// Joint is how several calls of a script are one command. A call among them that ends with an error has written nothing.
type Joint struct {
	Script *Script // it has no keys; its arguments are what follows Head in each of the calls. Its reply is an array: what these have in common, and one more for each
	Head   []byte  // with which each call begins
	Words  int     // that follow: the key and the arguments
	Looks  []byte  // arguments with which a call writes nothing
}

// Joint returns how several calls of a script are one command, or nil if they cannot be.
func (s *Script) Joint() *Joint {
	if s.joint == nil {
		return nil
	}
	return &Joint{s.joint, appendCall(nil, s, false, 1, rateArguments), 1 + rateArguments, appendTerms(nil, look)}
}

// The scripts, each of the files that it consists of. rate.lua and rate-lease.lua stand alone, since they are called most.
var (
	rateScript    = newJointScript("rate", "rates")
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

func newScript(name, decide string, files ...string) *Script {
	return &Script{Name: name, decide: decide, files: files}
}

// newJointScript returns a script of one file, which takes a key and four arguments, and has a joint script.
func newJointScript(name, joint string) *Script {
	s := newScript(name, "", name)
	s.joint = &Script{Name: joint, of: s, files: []string{"joint"}}
	return s
}

// jointHead is the beginning of a joint script. It has no flags: with some, Redis 7.0 would refuse all its calls together where only those that write are
// refused, and keys of several slots are only forbidden to scripts that have flags without that one.
const jointHead = "local run, sub, find, format, ceil = redis.call, string.sub, string.find, string.format, math.ceil\nlocal time = run('TIME')\n" +
	"local function call(key, first, second, third, fourth)\n"

// jointWords are what a script takes from its command and from its surroundings, and what that is within a joint one.
var jointWords = strings.NewReplacer("redis.call('TIME')", "time", "KEYS[1]", "key", "ARGV[1]", "first", "ARGV[2]", "second", "ARGV[3]", "third",
	"ARGV[4]", "fourth", "redis.call", "run", "string.sub", "sub", "string.find", "find", "string.format", "format", "math.ceil", "ceil")

// made returns the script, assembled.
func (s *Script) made() *Script {
	s.once.Do(s.assemble)
	return s
}

// assemble makes the text of its files, and what depends on that.
func (s *Script) assemble() {
	var parts []string
	if s.of != nil {
		parts = append(parts, jointHead, jointWords.Replace(s.of.Text()), "end\n")
	}
	for _, file := range s.files {
		if file == "one" || file == "grant" {
			parts = append(parts, "local decide = "+s.decide+"\n")
		}
		source, err := sources.ReadFile(file + ".lua")
		if err != nil {
			panic("scripted: " + err.Error())
		}
		parts = append(parts, string(source))
	}
	s.text = strings.Join(parts, "") // every gateway holds it, so nothing is left over
	sum := sha1.Sum([]byte(s.text))  //nolint:gosec // see above
	s.sha = hex.EncodeToString(sum[:])
	s.bySHA = respcmd.AppendBulk(respcmd.AppendBulk(nil, "EVALSHA"), s.sha)
}
