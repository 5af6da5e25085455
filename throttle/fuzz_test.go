package throttle

import "testing"

// FuzzDecide: no arguments make Decide panic, leave the bounds of its answer or disagree with the model.
func FuzzDecide(f *testing.F) {
	f.Add(int64(15), int64(30), int64(60), epoch, epoch, true, int64(1))
	f.Fuzz(func(t *testing.T, maxBurst, count, period, now, tat int64, exists bool, quantity int64) {
		checkAgainstModel(t, call{
			quota: Quota{MaxBurst: maxBurst, Count: count, Period: period},
			now:   now, tat: tat, exists: exists, quantity: quantity,
		})
	})
}
