package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// BenchmarkLoad loads a million limiter keys from a snapshot, as which a rewritten log begins, and from a log of that many decisions.
func BenchmarkLoad(b *testing.B) {
	const keys = 1_000_000
	for _, form := range []string{"snapshot", "log"} {
		b.Run(form, func(b *testing.B) {
			disk, now := crashfs.New("/data"), int64(wallAtStart)
			w, err := startAOF(disk, config.FsyncNo, &now, nil)
			require.NoError(b, err)
			var batch []byte
			for i := range keys {
				batch = append(batch, encodeCommand("RL.GCRA", fmt.Sprintf("limiter:%d", i), "100", "1", "1000s")...)
				if len(batch) > 10_000 || i == keys-1 {
					w.ask(batch)
					batch = batch[:0]
				}
			}
			if form == "snapshot" {
				w.words("BGREWRITEAOF") // unless one is under way by itself
				for w.rewriting() {
					w.tick()
				}
			}
			w.srv.endRewriter()
			w.srv.closeLog()
			spareServers = nil
			b.ReportAllocs()
			for b.Loop() {
				again, err := startAOF(disk, config.FsyncNo, &now, nil)
				require.NoError(b, err)
				b.StopTimer()
				require.Equal(b, keys, again.srv.keys.DB(0).Len())
				again.kill()
				spareServers = nil
				b.StartTimer()
			}
			b.ReportMetric(keys*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
