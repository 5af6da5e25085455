package upstream

import "headgate/internal/hashslot"

// Slots is how many hash slots the keys of a Redis Cluster are spread over.
const Slots = hashslot.Count

// Slot returns the hash slot of a key, as package hashslot has it.
func Slot(key []byte) uint16 { return hashslot.Of(key) }
