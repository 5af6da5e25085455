package limits_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// movedKey is what a key has been charged, by everybody: 0, or by a reservation: its number.
type movedKey map[int]int64

func (k movedKey) sum() (n int64) {
	for _, cost := range k {
		n += cost
	}
	return n
}

// TestReservationsOfMovedKeys: whatever becomes of the keys while reservations are open, never is less charged than what was taken for good, and what is
// open; where nothing was done to a key, exactly that is.
func TestReservationsOfMovedKeys(t *testing.T) {
	for _, algorithm := range []string{"FIXED 1000 1d", "SLIDING 1000 1d SLICES 1", "GCRA 1000 1 1d", "LOG 1000 1d"} {
		t.Run(algorithm, func(t *testing.T) {
			w := servertest.NewClockClient(t)
			w.Srv.Config.Get().EnableRestoreCommand = config.AccessYes
			returned := 0
			checkHistories(t, *limiterHistories/100, func(t *rapid.T) {
				rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				w.Now += 4 * 86_400 * 1e9
				w.Call("SELECT 0")
				w.Call("FLUSHALL")
				require.Equal(t, "OK", w.Call("RL.POLICY SET p "+algorithm))
				call := func(line string) string {
					reply := w.Call(line)
					t.Logf("%s: %s", line, reply)
					return reply
				}
				keys, dumped := map[string]movedKey{"a": {}, "b": {}, "c": {}}, map[string]movedKey{}
				names := []string{"a", "b", "c"}
				dumps, touched := map[string]string{}, map[string]bool{}
				open := map[int]string{}
				for id := 1; id < 25; id++ {
					w.Now += 1e6 // entries of a log go by their ms
					k, other := names[rnd.IntN(3)], names[rnd.IntN(3)]
					cost := 1 + rnd.Int64N(20)
					switch n := rnd.IntN(16); {
					case n < 4:
						call(fmt.Sprintf("RL.TAKE 1 p %s COST %d", k, cost))
						keys[k][0] += cost
					case n < 8:
						call(fmt.Sprintf("RL.RESERVE 1 p %s COST %d TTL 1h ID %d", k, cost, id))
						keys[k][id], open[id] = cost, k
					case n < 11 && len(open) > 0:
						ended := slices.Sorted(maps.Keys(open))[rnd.IntN(len(open))]
						require.Equal(t, "1", call(fmt.Sprintf("RL.CANCEL %d", ended)))
						delete(keys[open[ended]], ended)
						delete(open, ended)
						returned++
					case n == 11 && k != other && len(keys[k]) > 0:
						call("RENAME " + k + " " + other)
						keys[other], keys[k] = keys[k], movedKey{}
						touched[k], touched[other] = true, true
					case n == 12 && k != other && len(keys[k]) > 0:
						call("COPY " + k + " " + other + " REPLACE")
						keys[other] = maps.Clone(keys[k])
						touched[other] = true
					case n == 13 && len(keys[k]) > 0:
						dumps[k], _ = servertest.PlainReply(string(w.Run(servertest.EncodeCommand("DUMP", k))))
						dumped[k] = maps.Clone(keys[k])
					case n == 14 && dumped[k] != nil:
						ttl := "0"
						if algorithm[0] != 'L' {
							ttl = "86400000"
						}
						require.Equal(t, "OK", w.Ask("RESTORE", other, ttl, dumps[k], "REPLACE"))
						t.Logf("restored %s at %s", k, other)
						keys[other] = maps.Clone(dumped[k])
						touched[other] = true
					case n == 15:
						call("DEL " + k)
						keys[k] = movedKey{}
						touched[k] = true
					}
					for name, charged := range keys {
						used := 1000 - mustParse(strings.FieldsFunc(call("RL.TAKE 1 p "+name+" PEEK"), func(r rune) bool { return strings.ContainsRune("[] ", r) })[4])
						if touched[name] {
							// What was open when the key was replaced does not come back there, wherever it was charged.
							atLeast := charged[0]
							for id, cost := range charged {
								if id != 0 && open[id] != "" {
									atLeast += cost
								}
							}
							require.GreaterOrEqual(t, used, min(atLeast, 1000), "%s", name)
						} else {
							require.Equal(t, charged.sum(), used, "%s", name)
						}
					}
				}
			})
			require.NotZero(t, returned)
			t.Logf("%d histories, %d cancelled", *limiterHistories/100, returned)
		})
	}
}
