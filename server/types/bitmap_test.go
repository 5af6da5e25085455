package types_test

import (
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

func TestBitsDoNotAllocate(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Run(servertest.EncodeCommand("SETBIT", "bits", "1000", "1"))
	w.Run(servertest.EncodeCommand("SET", "number", "1234567"))
	for _, command := range [][]string{
		{"SETBIT", "bits", "77", "1"},
		{"SETBIT", "bits", "77", "0"},
		{"GETBIT", "bits", "77"},
		{"GETBIT", "number", "7"},
		{"BITCOUNT", "bits"},
		{"BITCOUNT", "number", "1", "-2", "BIT"},
		{"BITPOS", "bits", "1", "3"},
		{"BITFIELD", "bits", "SET", "u8", "#3", "7", "OVERFLOW", "SAT", "INCRBY", "i16", "99", "1000", "GET", "u4", "0"},
		{"BITFIELD_RO", "number", "GET", "u8", "0"},
	} {
		input := servertest.EncodeCommand(command...)
		require.NotContains(t, string(w.Run(input)), "ERR ")
		require.Zero(t, testing.AllocsPerRun(200, func() { w.Run(input) }), "%q", command)
	}
}
