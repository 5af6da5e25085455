// Command gubernator runs nodes of gubernator, which know each other, at the addresses of its arguments.
package main

import (
	"context"
	"io"
	"log"
	"os"

	"github.com/mailgun/gubernator/v2"
	"github.com/sirupsen/logrus"
)

func main() {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	var daemons []*gubernator.Daemon
	var peers []gubernator.PeerInfo
	for _, addr := range os.Args[1:] {
		daemon, err := gubernator.SpawnDaemon(context.Background(), gubernator.DaemonConfig{
			Logger: quiet, InstanceID: addr, GRPCListenAddress: addr, AdvertiseAddress: addr, HTTPListenAddress: "127.0.0.1:0",
			CacheSize: 1 << 18, // for all keys of the measurement
		})
		if err != nil {
			log.Fatal(err)
		}
		peer := gubernator.PeerInfo{GRPCAddress: addr, HTTPAddress: daemon.HTTPListener.Addr().String()}
		daemon.PeerInfo = peer
		daemons, peers = append(daemons, daemon), append(peers, peer)
	}
	for _, daemon := range daemons {
		daemon.SetPeers(peers)
	}
	select {}
}
