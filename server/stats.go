package server

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// statistics are the counters behind INFO. The executor's lock guards them.
type statistics struct {
	commands []commandStats // by Command.id

	processed           uint64 // commands run
	connections         uint64
	rejectedConnections uint64
	unknown             uint64 // commands that do not exist
	protocolErrors      uint64
	timedOut            uint64 // clients closed for being idle
	outputLimited       uint64 // clients closed for not reading
	keyspaceHits        uint64
	keyspaceMisses      uint64
	errorReplies        uint64
	errorCodes          map[string]uint64 // error replies by code; bounded by maxErrorCodes
	expiredBefore       uint64            // expired keys up to the last reset
	evictedBefore       uint64            // evicted keys up to the last reset
	evictedClients      uint64            // clients closed because of maxmemory-clients
	evictingNs          int64             // for how long more than maxmemory was in use, but for the present time
	peakMemory          uint64            // the most that usedMemory was when it was sampled

	lazyFreed uint64 // values that were freed by commands that ask for that to happen beside them

	batches    uint64    // executed
	batchNs    int64     // that these took, estimated as the time of commands is
	batchTimes histogram // the same

	expireNs   int64  // spent on removing keys past their time
	expireCaps uint64 // times that this ran into its limit of time

	rate, netIn, netOut rateSampler // commands, and bytes from and to clients
}

// commandStats are one command's counters. The time of commands marked Fast or Sampled is an estimate from one call in timedEvery.
type commandStats struct {
	calls, rejected, failed uint64
	ns                      int64
	times                   *histogram // nil until the first one
}

// rateSamples is how many samples instantaneous_ops_per_sec averages.
const rateSamples = 16

// rateSampler measures by how much a counter grows in a second, over the last samples.
type rateSampler struct {
	perSecond [rateSamples]float64
	next      int
	at        int64 // ns
	count     uint64
}

// sample enters the rates since the last sample.
func (s *statistics) sample(now int64, in, out uint64) {
	s.rate.sample(now, s.processed)
	s.netIn.sample(now, in)
	s.netOut.sample(now, out)
}

// sample enters the rate since the last sample.
func (r *rateSampler) sample(now int64, count uint64) {
	if r.at != 0 && now > r.at && count >= r.count {
		r.perSecond[r.next] = float64(count-r.count) * 1e9 / float64(now-r.at)
		r.next = (r.next + 1) % rateSamples
	}
	r.at, r.count = now, count
}

// average is the mean of the last samples.
func (r *rateSampler) average() float64 {
	sum := 0.0
	for _, v := range r.perSecond {
		sum += v
	}
	return sum / rateSamples
}

// maxErrorCodes bounds how many different codes are counted, so that a flood of made-up ones costs no memory.
const maxErrorCodes = 128

// maxErrorCode is the longest code that is counted by itself, in bytes. Redis looks no further either.
const maxErrorCode = 32

// countError counts an error reply by its code, which is its first word.
func (s *statistics) countError(text string) {
	s.errorReplies++
	code, _, _ := strings.Cut(text, " ")
	if len(code) > maxErrorCode { // a script can make up any
		code = "ERR"
	}
	n, known := s.errorCodes[code]
	if !known {
		if s.errorCodes == nil {
			s.errorCodes = map[string]uint64{}
		}
		if len(s.errorCodes) >= maxErrorCodes {
			return
		}
		code = strings.Clone(code)
	}
	s.errorCodes[code] = n + 1
}

// timedEvery is how often a command marked Fast or Sampled, or a batch, is timed: reading the clock twice would cost such a command a tenth
// of its time, so one in so many stands for all.
const timedEvery = 64

// beginBatch counts a batch and reports whether it is to be timed.
func (s *statistics) beginBatch() (timed bool) {
	s.batches++
	return s.batches%timedEvery == 0
}

// endBatch enters the time of a batch that was timed.
func (s *statistics) endBatch(took time.Duration) {
	s.batchNs += int64(took) * timedEvery
	s.batchTimes.record(int64(took), timedEvery)
}

// reset clears what CONFIG RESETSTAT clears.
func (s *statistics) reset() {
	clear(s.commands)
	*s = statistics{commands: s.commands, peakMemory: s.peakMemory}
}

// randomSeed returns a number that nobody can guess.
func randomSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
