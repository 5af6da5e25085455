//go:build !linux

package upstream

import "testing"

func readByWatcher(*testing.T, *Upstream) {}
