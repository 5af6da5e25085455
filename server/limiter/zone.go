package limiter

import (
	"sync"
	"time"
	_ "time/tzdata" // the zones go with the binary, whatever the machine has
)

// Limits on names of time zones.
const (
	maxZoneName = 64   // bytes; the longest there is has 32
	maxZones    = 2048 // kept in memory; there are some 600, and again under two more prefixes on some systems
)

// zones holds what has been loaded, so that a call for a zone finds it without a look at the file system.
var zones = struct {
	sync.RWMutex
	byName map[string]*time.Location
}{byName: map[string]*time.Location{}}

// parseZone finds a time zone by its name in the IANA database, such as Europe/Berlin.
func parseZone(name []byte) (*time.Location, error) {
	zones.RLock()
	zone := zones.byName[string(name)]
	zones.RUnlock()
	if zone != nil {
		return zone, nil
	}
	if !isZoneName(name) {
		return nil, zoneError(name)
	}
	zone, err := time.LoadLocation(string(name))
	if err != nil {
		return nil, zoneError(name)
	}
	zones.Lock()
	defer zones.Unlock()
	if len(zones.byName) < maxZones {
		zones.byName[string(name)] = zone
	}
	return zone, nil
}

// isZoneName reports whether a name may be looked up: words of letters, digits, _, + and - with single slashes between them, so that
// no zone has two names by way of the file system. Local, which would be another zone on every machine, is none.
func isZoneName(name []byte) bool {
	if len(name) == 0 || len(name) > maxZoneName || string(name) == "Local" {
		return false
	}
	previous := byte('/')
	for _, b := range name {
		letter := b|0x20 >= 'a' && b|0x20 <= 'z'
		switch {
		case letter, b >= '0' && b <= '9', b == '_', b == '+', b == '-':
		case b == '/' && previous != '/':
		default:
			return false
		}
		previous = b
	}
	return previous != '/'
}

// invalidZone is what a name is answered with that is none of a zone; %s stands for the name.
const invalidZone = "ERR unknown time zone '%s'"

func zoneError(name []byte) error {
	return Quoting(invalidZone, name)
}
