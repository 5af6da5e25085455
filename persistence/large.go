package persistence

import "io/fs"

// syncEvery is how many bytes of a large file are written before they are synced, so that no single sync takes long and delays
// what others write to the same disk.
const syncEvery = 32 << 20

// partedFile is a large file that is synced in parts.
type partedFile struct {
	osFile
	unsynced int
}

// Write implements io.Writer.
func (f *partedFile) Write(p []byte) (int, error) {
	n, err := f.osFile.Write(p)
	f.unsynced += n
	if err == nil && f.unsynced >= syncEvery {
		f.unsynced, err = 0, f.Sync()
	}
	return n, err
}

// CreateLarge implements FS.
func (OS) CreateLarge(name string, perm fs.FileMode) (File, error) { return createLarge(name, perm) }
