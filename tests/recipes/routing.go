package recipes

import "hash/fnv"

// ServerFor picks the server that keeps a user's limits: the one whose name makes the highest hash together with the user's. When a
// server goes, only its own users move; when one comes, it takes its share from all.
func ServerFor(user string, servers []string) string {
	var best string
	var highest uint64
	for _, server := range servers {
		h := fnv.New64a()
		_, _ = h.Write([]byte(user + "@" + server))
		if sum := mix(h.Sum64()); best == "" || sum > highest {
			best, highest = server, sum
		}
	}
	return best
}

// mix spreads a hash over all of its bits.
func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}
