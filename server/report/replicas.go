package report

import (
	"fmt"
	"strconv"
	"time"

	"headgate/server/command"
	"headgate/server/replication"

	"github.com/prometheus/client_golang/prometheus"
)

// Families with one series for each replica, by where it listens.
var (
	replicaBehind = newFamily(prometheus.GaugeValue, "headgate_replica_lag_bytes", "Bytes of changes that a replica has not acknowledged yet.", "slave_ip", "slave_port", "slave_state")
	replicaOffset = newFamily(prometheus.GaugeValue, "redis_connected_slave_offset_bytes", "Replication offset that a replica has acknowledged.", "slave_ip", "slave_port", "slave_state")
	replicaLag    = newFamily(prometheus.GaugeValue, "redis_connected_slave_lag_seconds", "Seconds since the last acknowledgement from a replica.", "slave_ip", "slave_port", "slave_state")
)

// shownReplicas is how many replicas have series of their own.
const shownReplicas = 100

// infoReplicas shows a line for each replica.
func (r *Reports) infoReplicas(_ *command.Ctx, t *infoText) {
	for i, f := range r.Replica.Primary.Status().Replicas {
		t.field("slave"+strconv.Itoa(i), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d", f.IP, f.Port, f.State, f.Offset, f.Lag/time.Second))
	}
}

func (m *Collector) collectReplicas(out chan<- prometheus.Metric) {
	var list []replication.ReplicaStatus
	m.locked(func() { list = m.Replica.Primary.Status().Replicas })
	seen := map[[3]string]bool{}
	for _, f := range list[:min(len(list), shownReplicas)] {
		labels := [3]string{f.IP, strconv.Itoa(f.Port), f.State}
		if seen[labels] {
			continue // two say that they listen at the same place
		}
		seen[labels] = true
		replicaBehind.send(out, float64(f.Behind), labels[:]...)
		replicaOffset.send(out, float64(f.Offset), labels[:]...)
		replicaLag.send(out, f.Lag.Seconds(), labels[:]...)
	}
}
