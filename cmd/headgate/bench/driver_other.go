//go:build !linux

package bench

// chooseDriver returns how a load is driven, and by how many workers.
func chooseDriver(o *Options) (driver, int) { return driveConn, o.Clients }
