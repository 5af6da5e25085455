package limits

import (
	"strconv"
	"strings"

	"headgate/internal/quoting"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
)

// A reservation is a string of its own in the database of its keys, so that it is kept, logged and sent to replicas as any other key. Its name is
//
//	rl:reservation:{id}
//
// and its value a line of words, quoted as in Redis's configuration file: its id, so that a copy under another name is no reservation, which would
// give back the same charge once more; when it times out in Unix ms; its ticket, which is about its time in Unix ns and by which reservations
// come after each other; and for each pair six:
//
//	policy   the policy's name
//	key      what it was asked about
//	words    what the policy said then
//	cost     what was reserved; below 0 where the reservation was settled already, and so much is still to be charged to what has become a log
//	where    of a fixed window, when that ends; of a sliding one, when the slice began that was charged; of a log, the time of the entries: in
//	         Unix ms; of a rate, when it was charged, in Unix ns
//	entries  of a log, the numbers of the entries, as in 0-4,6-6; else -
//
// The key expires a day after the reservation has timed out, which is long after it was cancelled unless nothing ran that could have.

const (
	// ReservationPrefix begins the names of reservations.
	ReservationPrefix = "rl:reservation:{"
	reservationSuffix = '}'

	reservationKept = 24 * 60 * 60 * 1000 // ms from the time-out to the key's expiry
	wordsBefore     = 3                   // the pairs'
	wordsOfPair     = 6
	nsPerMs         = 1_000_000
)

// reservedPair is one limit of a reservation.
type reservedPair struct {
	name    string // of the policy
	key     []byte
	words   string
	cost    int64
	where   int64
	entries []entryRun
	policy  *limiter.Policy // as the words say
}

// entryRun are entries of a log, by the numbers behind their time: the first and the last.
type entryRun struct{ first, last int64 }

// reservationValue is what the value of a reservation's key says.
type reservationValue struct {
	deadline int64 // Unix ms
	ticket   int64
	pairs    []reservedPair
}

// openReservation is a reservation that has been found.
type openReservation struct {
	reservationValue
	id []byte
	db *store.DB
}

// appendReservationKey appends the name of a reservation's key.
func appendReservationKey(dst, id []byte) []byte {
	dst = append(dst, ReservationPrefix...)
	return append(append(dst, id...), reservationSuffix)
}

// appendText appends the value of the reservation of an id.
func (r *reservationValue) appendText(dst, id []byte) []byte {
	dst = append(append(dst, quoting.Quote(string(id))...), ' ')
	dst = strconv.AppendInt(dst, r.deadline, 10)
	dst = strconv.AppendInt(append(dst, ' '), r.ticket, 10)
	for i := range r.pairs {
		p := &r.pairs[i]
		for _, word := range [...]string{p.name, string(p.key), p.words} {
			dst = append(append(dst, ' '), quoting.Quote(word)...)
		}
		dst = strconv.AppendInt(append(dst, ' '), p.cost, 10)
		dst = strconv.AppendInt(append(dst, ' '), p.where, 10)
		dst = appendEntries(append(dst, ' '), p.entries)
	}
	return dst
}

func appendEntries(dst []byte, runs []entryRun) []byte {
	if len(runs) == 0 {
		return append(dst, '-')
	}
	for i, run := range runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, run.first, 10)
		dst = strconv.AppendInt(append(dst, '-'), run.last, 10)
	}
	return dst
}

// readReservation reads the reservation of an id, or returns nil if there is none, or a value that no reservation has.
func (l *Limits) readReservation(db *store.DB, id []byte, nowMs int64) *openReservation {
	e, found := db.Look(l.Keys.Key(appendReservationKey(nil, id)), nowMs)
	if !found || e.Kind() != store.KindString {
		return nil
	}
	var digits command.IntegerText
	r := &openReservation{id: append([]byte(nil), id...), db: db}
	if !l.parseReservation(&r.reservationValue, id, string(e.Bytes(digits[:]))) {
		return nil
	}
	return r
}

// parseReservation reads the value of the reservation of an id, or returns false for what is none.
func (l *Limits) parseReservation(r *reservationValue, id []byte, text string) (ok bool) {
	words, err := quoting.SplitFew(text, wordsBefore+maxPairs*wordsOfPair)
	if err != nil || len(words) < wordsBefore+wordsOfPair || (len(words)-wordsBefore)%wordsOfPair != 0 {
		return false
	}
	if words[0] != string(id) {
		return false
	}
	numbers := func(word string, into *int64) {
		n, err := strconv.ParseInt(word, 10, 64)
		ok = ok && err == nil && n >= 0
		*into = n
	}
	ok = true
	numbers(words[1], &r.deadline)
	numbers(words[2], &r.ticket)
	for w := words[wordsBefore:]; ok && len(w) > 0; w = w[wordsOfPair:] {
		p := reservedPair{name: w[0], key: []byte(w[1]), words: w[2]}
		cost, owes := strings.CutPrefix(w[3], "-")
		if numbers(cost, &p.cost); owes {
			p.cost = -min(p.cost, maxReservedEntries)
		}
		numbers(w[4], &p.where)
		if p.entries, ok = parseEntries(w[5], ok); !ok {
			return false
		}
		if p.policy = l.policyOf(p.words); p.policy == nil {
			return false
		}
		r.pairs = append(r.pairs, p)
	}
	return ok && r.deadline <= limiter.Forever
}

// parseEntries reads runs of entries, of which a reservation has no more than it may have made.
func parseEntries(word string, ok bool) (runs []entryRun, _ bool) {
	if word == "-" {
		return nil, ok
	}
	total := int64(0)
	for run := range strings.SplitSeq(word, ",") {
		from, to, _ := strings.Cut(run, "-")
		first, err := strconv.ParseInt(from, 10, 64)
		last, errLast := strconv.ParseInt(to, 10, 64)
		if err != nil || errLast != nil || first < 0 || last < first || last-first >= maxReservedEntries {
			return nil, false
		}
		if total += last - first + 1; total > maxReservedEntries {
			return nil, false
		}
		runs = append(runs, entryRun{first, last})
	}
	return runs, ok
}

// maxKnownWords is how many policies' words are remembered with what they stand for.
const maxKnownWords = 1024

// policyOf is the limit that a policy's words stand for, or nil.
func (l *Limits) policyOf(words string) *limiter.Policy {
	known := l.Reservations.words
	if p, found := known[words]; found {
		return p
	}
	parsed, _, err := l.Algorithms.ParseText(limiter.Words(words))
	if err != nil {
		return nil
	}
	if known == nil || len(known) >= maxKnownWords {
		known = make(map[string]*limiter.Policy)
		l.Reservations.words = known
	}
	known[parsed.Words] = &parsed
	return &parsed
}

// policyNow is the limit of a pair's policy for its key as it is now, or as it was if there is none of the name.
func (l *Limits) policyNow(c *command.Ctx, p *reservedPair) *limiter.Policy {
	known, err := l.policy(c, []byte(p.name))
	if err != nil || known == nil {
		return p.policy
	}
	if !known.has(c.DB) {
		return known.Policy
	}
	now := l.override(c, known, p.key)
	if now.Shadow && p.policy.Limit < 0 { // it has let the reservation pass, and charged nothing
		return p.policy
	}
	return now
}
