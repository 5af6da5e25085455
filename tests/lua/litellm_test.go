package lua

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var litellm = flag.String("lua.litellm", "", "LiteLLM's litellm/proxy/hooks/parallel_request_limiter_v3.py, whose scripts are run as they are")

// scriptInPython is a script as that file has it.
var scriptInPython = regexp.MustCompile(`(?s)\n?([A-Z_]+_SCRIPT)[^\n"]*= """(.*?)"""`)

// litellmCalls make the keys and arguments of each script. Windows and slots are so long that none ends by the servers' clocks, and
// fractions are powers of two: others reach commands in the form of Redis 7.2, and 7.0 has another.
var litellmCalls = map[string]func(r *rand.Rand, l link) (keys, args []string){
	"BATCH_RATE_LIMITER_SCRIPT": func(r *rand.Rand, _ link) (keys, args []string) {
		for i := range 1 + r.IntN(4) {
			keys = append(keys, litellmKey(r, "batch", "window"), litellmKey(r, "batch", fmt.Sprint(i)))
		}
		return keys, []string{strconv.Itoa(1_800_000_000 + r.IntN(200_000)), "100000"}
	},
	"CHECK_AND_INCREMENT_BY_N_SCRIPT": func(r *rand.Rand, _ link) (keys, args []string) {
		for range 1 + r.IntN(4) {
			key := litellmKey(r, "tokens", "tokens")
			keys = append(keys, key+":window", key)
			args = append(args, strconv.Itoa(r.IntN(500)), strconv.Itoa(r.IntN(60)), strconv.Itoa(r.IntN(2)*7200), "3600")
		}
		return keys, args
	},
	"WINDOW_GUARDED_TOKEN_INCREMENT_SCRIPT": func(r *rand.Rand, l link) (keys, args []string) {
		for range 1 + r.IntN(3) {
			key := litellmKey(r, "tokens", "tokens")
			start := l.reference.Ask("GET", key+":window").Text
			if r.IntN(4) == 0 {
				start = "1"
			}
			keys = append(keys, key+":window", key)
			args = append(args, start, strconv.Itoa(r.IntN(80)-60), strconv.Itoa(r.IntN(2)*7200))
		}
		return keys, args
	},
	"PARALLEL_ACQUIRE_SCRIPT": func(r *rand.Rand, _ link) (keys, args []string) {
		for range 1 + r.IntN(3) {
			keys = append(keys, litellmKey(r, "slots", "calls"))
			args = append(args, strconv.Itoa(r.IntN(12)), "3600", fmt.Sprint("slot-", r.IntN(20)))
		}
		return keys, args
	},
	"PARALLEL_RELEASE_SCRIPT": func(r *rand.Rand, _ link) (keys, args []string) {
		for range 1 + r.IntN(3) {
			keys, args = append(keys, litellmKey(r, "slots", "calls")), append(args, fmt.Sprint("slot-", r.IntN(20)))
		}
		return keys, args
	},
	"PARALLEL_COUNT_SCRIPT": func(r *rand.Rand, _ link) (keys, args []string) {
		for range 1 + r.IntN(3) {
			keys, args = append(keys, litellmKey(r, "slots", "calls")), append(args, "3600")
		}
		return keys, args
	},
	"TOKEN_INCREMENT_SCRIPT": func(r *rand.Rand, _ link) (keys, args []string) {
		for range 1 + r.IntN(4) {
			keys = append(keys, litellmKey(r, "sums", "tokens"))
			args = append(args, []string{"1", "-3", "2.5", "0.25", "1e3"}[r.IntN(5)], strconv.Itoa(r.IntN(2)*7200))
		}
		return keys, args
	},
}

func litellmKey(r *rand.Rand, family, what string) string {
	return fmt.Sprintf("{%s:%d}:%s", family, r.IntN(3), what)
}

// TestLiteLLM runs the scripts of LiteLLM's limiter as they are, with random arguments, against both servers, and compares each reply and all keys.
func TestLiteLLM(t *testing.T) {
	if *litellm == "" {
		t.Skip("run by `make lua LITELLM=path`")
	}
	source, err := os.ReadFile(*litellm)
	require.NoError(t, err)
	scripts := map[string]string{}
	for _, found := range scriptInPython.FindAllStringSubmatch(string(source), -1) {
		require.Contains(t, litellmCalls, found[1], "the test does not know how this script is called")
		scripts[found[1]] = found[2]
	}
	require.Contains(t, scripts, "CHECK_AND_INCREMENT_BY_N_SCRIPT")
	random := *seed
	if random == 0 {
		random = uint64(time.Now().UnixNano())
	}
	t.Logf("%d calls of %d scripts, -lua.seed %d", *calls, len(scripts), random)
	r := rand.New(rand.NewPCG(random, random))
	p := startPair(t)
	l := p.dial(t, 2)
	compared, repeated := 0, 0
	for compared < *calls {
		l.clear()
		// The scripts ask for the time in seconds, so that what both answer within one of them is the same.
		second := time.Now().Unix()
		done := 0
		for time.Now().Unix() == second && done < batch {
			done += compareLiteLLM(t, r, l, scripts)
		}
		if time.Now().Unix() != second {
			repeated++
			require.Less(t, repeated, 60, "no batch ends within the second in which it begins")
			continue
		}
		compareContents(t, l, time.Second)
		compared += done
	}
	t.Logf("%d calls answered alike, %d batches left out since the second changed", compared, repeated)
}

// compareLiteLLM calls each script once, and returns how many calls were compared: none from the one on during which the second has changed.
func compareLiteLLM(t *testing.T, r *rand.Rand, l link, scripts map[string]string) (compared int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(litellmCalls)) {
		call := litellmCalls[name]
		text, there := scripts[name]
		if !there {
			continue
		}
		second := time.Now().Unix()
		keys, args := call(r, l)
		words := append(append([]string{"EVAL", text, strconv.Itoa(len(keys))}, keys...), args...)
		subject, reference, err := l.exchange(harness.Command(words...))
		require.NoError(t, err)
		if time.Now().Unix() != second {
			return compared
		}
		require.NotEqual(t, byte('-'), reference.Kind, "%s: %s", name, reference.Text)
		require.Equal(t, reference.Wire(), subject.Wire(), "%s %q %q", name, keys, args)
		compared++
	}
	return compared
}
