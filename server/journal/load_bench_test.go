package journal_test

import (
	"fmt"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// BenchmarkLoad loads a million limiter keys from a snapshot, as which a rewritten log begins, and from a log of that many decisions.
func BenchmarkLoad(b *testing.B) {
	const keys = 1_000_000
	for _, form := range []string{"snapshot", "log"} {
		b.Run(form, func(b *testing.B) {
			disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
			w, err := servertest.StartAOF(disk, config.FsyncNo, &now, nil)
			require.NoError(b, err)
			var batch []byte
			for i := range keys {
				batch = append(batch, servertest.EncodeCommand("RL.GCRA", fmt.Sprintf("limiter:%d", i), "100", "1", "1000s")...)
				if len(batch) > 10_000 || i == keys-1 {
					w.Ask(batch)
					batch = batch[:0]
				}
			}
			if form == "snapshot" {
				w.Words("BGREWRITEAOF") // unless one is under way by itself
				for w.Rewriting() {
					w.Tick()
				}
			}
			w.Srv.EndRewriter()
			w.Srv.CloseLog()
			servertest.SpareServers = nil
			b.ReportAllocs()
			for b.Loop() {
				again, err := servertest.StartAOF(disk, config.FsyncNo, &now, nil)
				require.NoError(b, err)
				b.StopTimer()
				require.Equal(b, keys, again.Srv.Keys.DB(0).Len())
				again.Kill()
				servertest.SpareServers = nil
				b.StartTimer()
			}
			b.ReportMetric(keys*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
