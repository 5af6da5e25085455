package throttle

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// step is one call within a vector: "max_burst count period [quantity]" at so many nanoseconds after the first.
type step struct {
	after int64
	call  string
	reply string
	write Write
}

// repeat is n equal calls, every so many nanoseconds, of which reply(i) tells what the i-th (from 0) answers.
func repeat(n int, every int64, call string, reply func(i int) string) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{after: int64(i) * every, call: call, reply: reply(i), write: Set}
	}
	return steps
}

// vectors are whole conversations about one fresh key. Flip any comparison, sign or error check of the package, or move
// a comparison by one, and a row of the tables here, in TestUnits or in TestCheckedArithmetic fails; a new comparison
// brings its row along. The exceptions change nothing: interval <= 0 where 0 is already out, and newTAT != now.
var vectors = []struct {
	name  string
	steps []step
}{
	{"15 30 60: sixteen calls a millisecond apart, the 17th is limited", append(
		repeat(16, nsPerMs, "15 30 60", func(i int) string { return fmt.Sprintf("0 16 %d -1 %d", 15-i, 2+2*i) }),
		step{16 * nsPerMs, "15 30 60", "1 16 0 2 32", Keep})},
	{"0 1 2: limited after 1 ms, allowed exactly at the boundary", []step{
		{0, "0 1 2", "0 1 0 -1 2", Set},
		{nsPerMs, "0 1 2", "1 1 0 2 2", Keep},
		{2000 * nsPerMs, "0 1 2", "0 1 0 -1 2", Set}}},
	{"0 1 2: a nanosecond before the boundary", []step{
		{0, "0 1 2", "0 1 0 -1 2", Set},
		{2*nsPerSecond - 1, "0 1 2", "1 1 0 1 0", Keep}}},
	{"4 1 1 6: quantity above the limit", []step{{0, "4 1 1 6", "1 5 5 -1 0", Keep}}},
	{"4 1 1: five times, then a sixth", append(
		repeat(5, 0, "4 1 1", func(i int) string { return fmt.Sprintf("0 5 %d -1 %d", 4-i, 1+i) }),
		step{0, "4 1 1", "1 5 0 1 5", Keep})},
	{"4 1 1 5: quantity equal to the limit passes later", []step{
		{0, "4 1 1", "0 5 4 -1 1", Set},
		{0, "4 1 1 5", "1 5 4 1 1", Keep},
		{nsPerSecond, "4 1 1 5", "0 5 0 -1 5", Set}}},
	{"15 30 60 16", []step{{0, "15 30 60 16", "0 16 0 -1 32", Set}}},
	{"15 30 60 17", []step{{0, "15 30 60 17", "1 16 16 -1 0", Keep}}},
	{"15 30 60 5, then -2, then -3: the key is gone", []step{
		{0, "15 30 60 5", "0 16 11 -1 10", Set},
		{0, "15 30 60 -2", "0 16 13 -1 6", Set},
		{0, "15 30 60 -3", "0 16 16 -1 0", Delete}}},
	{"15 30 60 5, then -9: giving back more than was taken", []step{
		{0, "15 30 60 5", "0 16 11 -1 10", Set},
		{0, "15 30 60 -9", "0 16 16 -1 0", Delete},
		{0, "15 30 60", "0 16 15 -1 2", Set}}},
	{"15 30 60 -1: giving back to an absent key", []step{{0, "15 30 60 -1", "0 16 16 -1 0", Keep}}},
	{"9 1 1 10, then 1 1 1 1: a changed limit holds at once", []step{
		{0, "9 1 1 10", "0 10 0 -1 10", Set},
		{0, "1 1 1 1", "1 2 0 9 10", Keep}}},
	{"9 1 1 10, then 1 1 1 -2: a refund can be limited", []step{
		{0, "9 1 1 10", "0 10 0 -1 10", Set},
		{0, "1 1 1 -2", "1 2 0 6 10", Keep}}},
	{"99 100 86400, then 99, then one more", []step{
		{0, "99 100 86400", "0 100 99 -1 864", Set},
		{0, "99 100 86400 99", "0 100 0 -1 86400", Set},
		{0, "99 100 86400", "1 100 0 864 86400", Keep}}},
	{"1 1 10 2, then 0: a look is not limited at the tolerance", []step{
		{0, "1 1 10 2", "0 2 0 -1 20", Set},
		{0, "1 1 10 0", "0 2 0 -1 20", Keep}}},
	{"3 1 10 4, then 1 1 10 0: a look is limited beyond the tolerance", []step{
		{0, "3 1 10 4", "0 4 0 -1 40", Set},
		{0, "1 1 10 0", "1 2 0 20 40", Keep}}},
	{"15 30 60 0: a look creates nothing", []step{{0, "15 30 60 0", "0 16 16 -1 0", Keep}}},
	{"6000 6000 1: a high rate keeps its state below a millisecond", []step{
		{0, "6000 6000 1", "0 6001 6000 -1 0", Set},
		{0, "6000 6000 1 6000", "0 6001 0 -1 1", Set},
		{0, "6000 6000 1", "1 6001 0 1 1", Keep}}},
	{"10 2000000 1: a rate above one per microsecond", []step{
		{0, "10 2000000 1 11", "0 11 0 -1 0", Set},
		{499, "10 2000000 1", "1 11 0 1 0", Keep},
		{500, "10 2000000 1", "0 11 0 -1 0", Set}}},
	{"0 1000000000 1: the highest rate", []step{
		{0, "0 1000000000 1", "0 1 0 -1 0", Set},
		{0, "0 1000000000 1", "1 1 0 1 0", Keep},
		{1, "0 1000000000 1", "0 1 0 -1 0", Set}}},
	{"0 7 60: the interval is cut to whole nanoseconds", []step{
		{0, "0 7 60", "0 1 0 -1 9", Set},
		{8_571_428_570, "0 7 60", "1 1 0 1 0", Keep},
		{8_571_428_571, "0 7 60", "0 1 0 -1 9", Set}}},
	{"0 1 7000000000: as long as the clock reaches", []step{
		{0, "0 1 7000000000", "0 1 0 -1 7000000000", Set},
		{nsPerSecond, "0 1 7000000000 0", "0 1 0 -1 6999999999", Keep}}},
	{"-1 30 60: limit 0", []step{{0, "-1 30 60", "1 0 0 -1 0", Keep}}},
	{"-5 30 60: limit below zero", []step{{0, "-5 30 60", "1 -4 0 -1 0", Keep}}},
	{"15 30 60, then -1 30 60 0: a look at limit 0 is limited until nothing is used", []step{
		{0, "15 30 60", "0 16 15 -1 2", Set},
		{0, "-1 30 60 0", "1 0 0 2 2", Keep},
		{2 * nsPerSecond, "-1 30 60 0", "0 0 0 -1 0", Keep}}},
	{"-5 30 60 -4: a refund under a limit below zero", []step{{0, "-5 30 60 -4", "1 -4 0 8 0", Keep}}},
	{"-5 30 60 -3: a smaller one can never pass", []step{{0, "-5 30 60 -3", "1 -4 0 -1 0", Keep}}},
	{"-9000000000 1 1: the tolerance reaches beyond int64 from now", []step{
		{0, "-9000000000 1 1", "1 -8999999999 0 -1 0", Keep}}},
	{"15 -30 60: interval below zero", []step{{0, "15 -30 60", "1 16 0 -1 0", Keep}}},
	{"15 30 -60: interval below zero", []step{{0, "15 30 -60", "1 16 0 -1 0", Keep}}},
	{"15 -30 60 0 and -1: interval below zero limits looks and refunds too", []step{
		{0, "15 -30 60 0", "1 16 0 -1 0", Keep},
		{0, "15 -30 60 -1", "1 16 0 -1 0", Keep}}},
	{"-5 -30 60: interval and limit below zero", []step{{0, "-5 -30 60", "1 -4 0 -1 0", Keep}}},
	{"15 30 60 5, then 15 -30 60: interval below zero tells the state", []step{
		{0, "15 30 60 5", "0 16 11 -1 10", Set},
		{nsPerSecond, "15 -30 60", "1 16 0 -1 9", Keep}}},
	{"15 -30 -60: both below zero", []step{{0, "15 -30 -60", "0 16 15 -1 2", Set}}},
}

func TestDecideVectors(t *testing.T) {
	for _, vector := range vectors {
		t.Run(vector.name, func(t *testing.T) {
			var key storedKey
			for i, s := range vector.steps {
				q, quantity := parseCall(t, s.call)
				g, err := NewGCRA(q)
				require.NoError(t, err)
				now := epoch + s.after
				oneStep, err := Decide(q, now, key.tat, key.exists, quantity)
				require.NoError(t, err)
				d, err := key.decide(g, now, quantity)
				require.NoError(t, err)
				require.Equal(t, s.reply, wire(d), "call %d: %s", i+1, s.call)
				require.Equal(t, s.write, d.Write, "call %d: %s", i+1, s.call)
				require.Equal(t, d, oneStep, "call %d: %s", i+1, s.call)
				if d.Write == Set {
					require.Equal(t, d.TAT, now+d.ResetAfter, "call %d: %s", i+1, s.call)
				} else {
					require.Zero(t, d.TAT, "call %d: %s", i+1, s.call)
				}
			}
		})
	}
}

// TestDecideStoredTAT covers states that only a user, another limit or another clock can leave behind.
func TestDecideStoredTAT(t *testing.T) {
	tests := []struct {
		name     string
		call     string
		now, tat int64
		want     Decision
	}{
		{"a TAT in the past counts as now", "15 30 60", epoch, epoch - 1,
			Decision{Limit: 16, Remaining: 15, RetryAfter: NoRetry, ResetAfter: 2 * nsPerSecond, Write: Set, TAT: epoch + 2*nsPerSecond}},
		{"the lowest TAT counts as now", "15 30 60", epoch, math.MinInt64,
			Decision{Limit: 16, Remaining: 15, RetryAfter: NoRetry, ResetAfter: 2 * nsPerSecond, Write: Set, TAT: epoch + 2*nsPerSecond}},
		{"a refund onto a TAT in the past deletes the key", "15 30 60 -1", epoch, epoch - 1,
			Decision{Limit: 16, Remaining: 16, RetryAfter: NoRetry, Write: Delete}},
		{"a look at a TAT in the past leaves the key", "15 30 60 0", epoch, epoch - 1,
			Decision{Limit: 16, Remaining: 16, RetryAfter: NoRetry}},
		{"a TAT far ahead", "15 30 60 0", epoch, math.MaxInt64,
			Decision{Limited: true, Limit: 16, RetryAfter: math.MaxInt64 - epoch - 32*nsPerSecond, ResetAfter: math.MaxInt64 - epoch}},
		{"a TAT far ahead at instant 0", "0 1 1 -1", 0, math.MaxInt64,
			Decision{Limited: true, Limit: 1, RetryAfter: math.MaxInt64 - 2*nsPerSecond, ResetAfter: math.MaxInt64}},
		{"the highest TAT that can be reached", "0 1 1", math.MaxInt64 - nsPerSecond, 0,
			Decision{Limit: 1, RetryAfter: NoRetry, ResetAfter: nsPerSecond, Write: Set, TAT: math.MaxInt64}},
		{"a clock before 1970", "15 30 60", -3 * nsPerSecond, -nsPerSecond,
			Decision{Limit: 16, Remaining: 14, RetryAfter: NoRetry, ResetAfter: 4 * nsPerSecond, Write: Set, TAT: nsPerSecond}},
		{"the lowest instant", "0 1 1", math.MinInt64, math.MinInt64,
			Decision{Limit: 1, RetryAfter: NoRetry, ResetAfter: nsPerSecond, Write: Set, TAT: math.MinInt64 + nsPerSecond}},
		{"a refund of the lowest quantity", "0 1000000000 1 -9223372036854775808", epoch, epoch + 5,
			Decision{Limit: 1, Remaining: 1, RetryAfter: NoRetry, Write: Delete}},
		{"interval below zero, a TAT far ahead", "15 -30 60", 0, math.MaxInt64,
			Decision{Limited: true, Limit: 16, RetryAfter: NoRetry, ResetAfter: math.MaxInt64}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q, quantity := parseCall(t, test.call)
			d, err := Decide(q, test.now, test.tat, true, quantity)
			require.NoError(t, err)
			require.Equal(t, test.want, d)
		})
	}
}

func TestDecideErrors(t *testing.T) {
	const none = int64(math.MinInt64) // A TAT that never counts.
	tests := []struct {
		name     string
		call     string
		now, tat int64
		want     error
	}{
		{"count 0", "15 0 60", epoch, none, ErrZeroRate},
		{"period 0", "15 30 0", epoch, none, ErrZeroRate},
		{"count and period 0", "15 0 0", epoch, none, ErrZeroRate},
		{"interval 0", "15 1000000001 1", epoch, none, ErrZeroRate},
		{"interval 0 from below", "15 -1000000001 1", epoch, none, ErrZeroRate},
		{"count 0 is judged before the period", "15 0 9223372036854775807", epoch, none, ErrZeroRate},
		{"interval 0 is judged before max_burst", "9223372036854775807 1000000001 1", epoch, none, ErrZeroRate},
		{"max_burst + 1", "9223372036854775807 1000000000 1", epoch, none, ErrOverflow},
		{"max_burst + 1, the largest that fits", "9223372036854775806 1000000000 1", epoch, none, nil},
		{"max_burst + 1, interval below zero", "9223372036854775807 -1000000000 1", epoch, none, ErrOverflow},
		{"period * 1e9", "0 30 9223372037", epoch, none, ErrOverflow},
		{"period * 1e9, the largest that fits", "0 30 9223372036", epoch, none, nil},
		{"period * 1e9, from below", "0 30 -9223372037", epoch, none, ErrOverflow},
		{"period * 1e9, the smallest that fits", "0 -1 -9223372036", 0, none, nil},
		{"period * 1e9, the lowest int64", "0 30 -9223372036854775808", epoch, none, ErrOverflow},
		{"count, the lowest int64", "0 -9223372036854775808 -9223372036", epoch, none, ErrZeroRate},
		{"interval * limit", "9223372036 1 1", epoch, none, ErrOverflow},
		{"interval * limit, the largest that fits", "9223372035 1 1", epoch, none, nil},
		{"interval * limit, from below", "-9223372038 1 1", epoch, none, ErrOverflow},
		{"interval * limit, interval below zero", "9223372036 -1 1", epoch, none, ErrOverflow},
		{"max_burst, the lowest int64", "-9223372036854775808 30 60", epoch, none, ErrOverflow},
		{"interval * quantity", "15 1 1 9223372037", 0, none, ErrOverflow},
		{"interval * quantity, the largest that fits", "15 1 1 9223372036", 0, none, nil},
		{"interval * quantity, from below", "15 30 60 -9223372036854775808", 0, none, ErrOverflow},
		{"interval * quantity, interval below zero", "15 -1 1 9223372037", 0, none, ErrOverflow},
		{"interval -1 and the lowest quantity", "15 -1000000000 1 -9223372036854775808", 0, none, ErrOverflow},
		{"tat + increment", "15 1 1", math.MaxInt64 - nsPerSecond + 1, none, ErrOverflow},
		{"tat + increment, the largest that fits", "15 1 1", math.MaxInt64 - nsPerSecond, none, nil},
		{"tat + increment, stored", "15 1 1", epoch, math.MaxInt64 - nsPerSecond + 1, ErrOverflow},
		{"tat + increment, stored, the largest that fits", "15 1 1", epoch, math.MaxInt64 - nsPerSecond, nil},
		{"tat + increment, from below", "15 1 1 -1", math.MinInt64 + nsPerSecond - 1, none, ErrOverflow},
		{"tat + increment, interval below zero: not added", "15 -1 1 -1", math.MaxInt64, none, nil},
		{"new_tat - now", "15 1 1 0", -1, math.MaxInt64, ErrOverflow},
		{"new_tat - now, the largest that fits", "15 1 1 0", 0, math.MaxInt64, nil},
		{"tat - now of a limited refund", "15 1 1 -1", -1, math.MaxInt64, ErrOverflow},
		{"tat - now, interval below zero", "15 -1 1", -1, math.MaxInt64, ErrOverflow},
		{"retry with the lowest tolerance", "-4611686018427387905 500000000 1 -4611686018427387904", 0, none, ErrOverflow},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q, quantity := parseCall(t, test.call)
			d, err := Decide(q, test.now, test.tat, true, quantity)
			if test.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, test.want)
			require.Zero(t, d)
		})
	}
}

func TestAbsentKeyHasNoTAT(t *testing.T) {
	d, err := Decide(Quota{MaxBurst: 15, Count: 30, Period: 60}, epoch, math.MaxInt64, false, 1)
	require.NoError(t, err)
	require.Equal(t, "0 16 15 -1 2", wire(d))
}

func TestZeroGCRA(t *testing.T) {
	_, err := GCRA{}.Decide(epoch, 0, false, 1)
	require.ErrorIs(t, err, ErrZeroRate)
}

func TestNewCapacityGCRA(t *testing.T) {
	g, err := NewCapacityGCRA(15, 30, 60)
	require.NoError(t, err)
	var key storedKey
	for i := range 15 {
		d, err := key.decide(g, epoch, 1)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("0 15 %d -1 %d", 14-i, 2+2*i), wire(d))
	}
	d, err := key.decide(g, epoch, 1)
	require.NoError(t, err)
	require.Equal(t, "1 15 0 2 30", wire(d))

	_, err = NewCapacityGCRA(15, 0, 60)
	require.ErrorIs(t, err, ErrZeroRate)
	_, err = NewCapacityGCRA(math.MaxInt64, 1, 1)
	require.ErrorIs(t, err, ErrOverflow)
	g, err = NewCapacityGCRA(math.MaxInt64, nsPerSecond, 1)
	require.NoError(t, err, "a capacity needs no room for one more")
	d, err = g.Decide(0, 0, false, math.MaxInt64)
	require.NoError(t, err)
	require.Equal(t, Decision{Limit: math.MaxInt64, RetryAfter: NoRetry, ResetAfter: math.MaxInt64, Write: Set, TAT: math.MaxInt64}, d)
}

func TestDecideAllocatesNothing(t *testing.T) {
	q := Quota{MaxBurst: 15, Count: 30, Period: 60}
	for _, quantity := range []int64{-1, 0, 1, 17, math.MaxInt64} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			d, _ := Decide(q, epoch, epoch+1, true, quantity)
			_ = RetrySeconds(d.RetryAfter) + Seconds(d.ResetAfter) + ExpireAtMs(d.TAT)
		}), "quantity %d", quantity)
	}
}

func BenchmarkDecide(b *testing.B) {
	q := Quota{MaxBurst: 15, Count: 30, Period: 60}
	var key storedKey
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		now += nsPerSecond
		d, err := Decide(q, now, key.tat, key.exists, 1)
		if err != nil {
			b.Fatal(err)
		}
		if d.Write == Set {
			key = storedKey{exists: true, tat: d.TAT}
		}
	}
}
