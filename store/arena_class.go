package store

const (
	maxBlock   = 32 << 10 // largest block that shares a run with others, in bytes
	maxClasses = 64       // a power of two, so that a masked class needs no bounds check
	hugeClass  = 255      // the class of a block that is a mapping of its own
)

// sizeClasses are the block sizes of the arena.
type sizeClasses struct {
	size    [maxClasses]uint32
	ofUnits [maxBlock/unitSize + 1]uint8 // the class for a size rounded up to units
}

// classes never changes after it has been built.
var classes = buildClasses()

// buildClasses makes classes that waste at most a fifth of a block up to 1 KiB, less where rate limiters keep their
// records (up to 80 bytes); above that, the sizes that divide a run without a rest.
func buildClasses() *sizeClasses {
	sizes := []uint32{
		16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024,
	}
	for _, perRun := range []uint32{56, 48, 40, 32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2} {
		sizes = append(sizes, runSize/perRun/unitSize*unitSize)
	}
	c := &sizeClasses{}
	copy(c.size[:], sizes)
	class := uint8(0)
	for units := range c.ofUnits {
		if uint32(units)*unitSize > sizes[class] {
			class++
		}
		c.ofUnits[units] = class
	}
	return c
}

// classFor is the smallest class that holds size bytes, or hugeClass.
func classFor(size int) uint8 {
	units := uint(size+unitSize-1) / unitSize
	if units >= uint(len(classes.ofUnits)) {
		return hugeClass
	}
	return classes.ofUnits[units]
}

// classSize is the size of the class's blocks in bytes. Not for hugeClass.
func classSize(class uint8) uint32 { return classes.size[class%maxClasses] }
