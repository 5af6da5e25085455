package command

import (
	"strings"
	"time"
)

// Statistics are the counters behind INFO. The executor's lock guards them.
type Statistics struct {
	Commands []Counters // by Command.ID

	Processed           uint64 // commands run
	Connections         uint64
	RejectedConnections uint64
	Unknown             uint64 // commands that do not exist
	ProtocolErrors      uint64
	TimedOut            uint64 // clients closed for being idle
	OutputLimited       uint64 // clients closed for not reading
	KeyspaceHits        uint64
	KeyspaceMisses      uint64
	ErrorReplies        uint64
	ErrorCodes          map[string]uint64 // error replies by code; bounded by maxErrorCodes
	ExpiredBefore       uint64            // expired keys up to the last reset
	EvictedBefore       uint64            // evicted keys up to the last reset
	EvictedClients      uint64            // clients closed because of maxmemory-clients
	EvictingNs          int64             // for how long more than maxmemory was in use, but for the present time
	PeakMemory          uint64            // the most that UsedMemory was when it was sampled

	LazyFreed uint64 // values that were freed by commands that ask for that to happen beside them

	Batches    uint64    // executed
	BatchNs    int64     // that these took, estimated as the time of commands is
	BatchTimes Histogram // the same

	ExpireNs   int64  // spent on removing keys past their time
	ExpireCaps uint64 // times that this ran into its limit of time

	Rate, NetIn, NetOut rateSampler // commands, and bytes from and to clients
}

// Counters are one command's counters. The time of commands marked Fast or Sampled is an estimate from one call in TimedEvery.
type Counters struct {
	Calls, Rejected, Failed uint64
	Ns                      int64
	Times                   *Histogram // nil until the first one
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

// Sample enters the rates since the last sample.
func (s *Statistics) Sample(now int64, in, out uint64) {
	s.Rate.sample(now, s.Processed)
	s.NetIn.sample(now, in)
	s.NetOut.sample(now, out)
}

// sample enters the rate since the last sample.
func (r *rateSampler) sample(now int64, count uint64) {
	if r.at != 0 && now > r.at && count >= r.count {
		r.perSecond[r.next] = float64(count-r.count) * 1e9 / float64(now-r.at)
		r.next = (r.next + 1) % rateSamples
	}
	r.at, r.count = now, count
}

// Average is the mean of the last samples.
func (r *rateSampler) Average() float64 {
	sum := 0.0
	for _, v := range r.perSecond {
		sum += v
	}
	return sum / rateSamples
}

// maxErrorCodes bounds how many different codes are counted, so that a flood of made-up ones costs no memory.
const maxErrorCodes = 128

// MaxErrorCode is the longest error code that has a counter of its own, in bytes. Redis looks no further either.
const MaxErrorCode = 32

// CountError counts an error reply by its code, which is its first word.
func (s *Statistics) CountError(text string) {
	s.ErrorReplies++
	code, _, _ := strings.Cut(text, " ")
	if len(code) > MaxErrorCode { // a script can make up any
		code = "ERR"
	}
	n, known := s.ErrorCodes[code]
	if !known {
		if s.ErrorCodes == nil {
			s.ErrorCodes = map[string]uint64{}
		}
		if len(s.ErrorCodes) >= maxErrorCodes {
			return
		}
		code = strings.Clone(code)
	}
	s.ErrorCodes[code] = n + 1
}

// TimedEvery is how often a command marked Fast or Sampled, or a batch, is timed: reading the clock twice would cost such a command a tenth
// of its time, so one in so many stands for all.
const TimedEvery = 64

// BeginBatch counts a batch and reports whether it is to be timed.
func (s *Statistics) BeginBatch() (timed bool) {
	s.Batches++
	return s.Batches%TimedEvery == 0
}

// EndBatch enters the time of a batch that was timed.
func (s *Statistics) EndBatch(took time.Duration) {
	s.BatchNs += int64(took) * TimedEvery
	s.BatchTimes.Record(int64(took), TimedEvery)
}

// Reset clears what CONFIG RESETSTAT clears.
func (s *Statistics) Reset() {
	clear(s.Commands)
	*s = Statistics{Commands: s.Commands, PeakMemory: s.PeakMemory}
}
