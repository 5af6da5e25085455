package replicas

import (
	"flag"
	"os"
	"testing"
)

// testsAtOnce is how many tests run at a time, whatever the number of processors: most of them wait, for a link that breaks or comes back.
const testsAtOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if atOnce := flag.Lookup("test.parallel"); atOnce.Value.String() == atOnce.DefValue {
		if err := flag.Set("test.parallel", testsAtOnce); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
