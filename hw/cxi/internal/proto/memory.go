package proto

// Regions with keys that their owner chooses. Those with the least keys have indices of their own, without matching;
// all others share IndexWrite and IndexRead, where the key is the match bits.

const (
	// MaxKey is the greatest key that an owner chooses.
	MaxKey = 1<<32 - 1
	// optimised keys are below.
	optimised = 100

	// IndexWrite is where regions without an index of their own are written to: beside control messages.
	IndexWrite = IndexControl
	// IndexRead is where they are read.
	IndexRead = 228

	indexOwnWrite = 17  // and the key behind it
	indexOwnRead  = 128 // the same

	// notifyBit in match bits has the target of a write get an event with its data. libfabric's provider has the
	// same bit in the keys that it chooses, and no such writes by keys that the owner chooses.
	notifyBit = 1 << 59
)

// Region is where a region is reached.
type Region struct {
	Write, Read uint32 // indices
	MatchBits   uint64
	// Own says that the indices are the region's alone, without matching, for restricted commands.
	Own bool
}

// RegionOf is where the region with a key is, of at most MaxKey.
func RegionOf(key uint64) Region {
	if key < optimised {
		return Region{Write: indexOwnWrite + uint32(key), Read: indexOwnRead + uint32(key), Own: true}
	}
	return Region{Write: IndexWrite, Read: IndexRead, MatchBits: key}
}

// NotifyOf is where writes with data to the region with a key go, of at most MaxKey: all to the shared index.
func NotifyOf(key uint64) Region {
	return Region{Write: IndexWrite, Read: IndexRead, MatchBits: key | notifyBit}
}
