//go:build !amd64

package rdb

// foldCRC is for processors that multiply without carries; here it does nothing.
func foldCRC(crc uint64, p []byte) (sum uint64, rest []byte) { return crc, p }
