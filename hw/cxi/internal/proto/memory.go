package proto

// Regions by their keys. The owner chooses a key, or its endpoint does, which says in it what peers need to know. Some
// regions have indices of their own, without matching; all others share IndexWrite and IndexRead, where the key is in
// the match bits.

const (
	// MaxKey is the greatest key that an owner chooses.
	MaxKey = 1<<32 - 1
	// optimised keys are below.
	optimised = 100

	// IndexWrite is where regions without an index of their own are written to: beside control messages.
	IndexWrite = IndexControl
	// IndexRead is where they are read.
	IndexRead = 228

	indexOwnWrite = 17  // and the number of the region behind it
	indexOwnRead  = 128 // the same

	// OwnIDs is how many ids of keys that an endpoint chooses have indices of their own: behind those of address
	// contexts.
	OwnIDs = optimised - LACs
	// ChosenIDs is how many ids there are.
	ChosenIDs = 1 << 16
	// SequenceMask are the bits of a sequence number, by which two keys with one id differ.
	SequenceMask = 1<<43 - 1
)

// Keys that an endpoint chooses:
//
//	id:16 | sequence:43 | notify | events | own | 0 | chosen
//
// or, of a region that is reached through all memory of an address context:
//
//	LAC:3 | offset of the region:58 | own | cached | chosen
//
// Match bits are the same without chosen, which marks control messages there, and notify is set in those of writes that
// come with data. Such writes to regions with keys of their owners have that bit, too; libfabric's provider has none.
const (
	notifyBit = 1 << 59
	eventsBit = 1 << 60
	ownBit    = 1 << 61
	cachedBit = 1 << 62
	chosenBit = 1 << 63

	// RoomBits are match bits of an entry that each endpoint of weft has beside control messages: writes without bytes
	// to it change nothing, and say nothing to its owner. No key has them.
	RoomBits = ownBit | notifyBit

	idBits       = 16
	cachedLACs   = 1<<3 - 1
	cachedShift  = 3
	cachedOffset = 1<<58 - 1
)

// Region is where a region is reached.
type Region struct {
	Write, Read uint32 // indices
	MatchBits   uint64
	Offset      uint64 // where it begins in what is there, bytes
	// Own says that the indices are without matching, for restricted commands.
	Own bool
	// Events says that the region's owner is to know of each operation, for which restricted commands do not do.
	Events bool
}

// Chosen is a key that an endpoint chooses.
type Chosen struct {
	ID       uint32 // below ChosenIDs, with Own below OwnIDs
	Sequence uint64 // SequenceMask
	Own      bool
	Events   bool
}

// Key is the key.
func (c Chosen) Key() uint64 {
	key := uint64(c.ID)&(ChosenIDs-1) | c.Sequence&SequenceMask<<idBits | chosenBit
	if c.Own {
		key |= ownBit
	}
	if c.Events {
		key |= eventsBit
	}
	return key
}

// IsChosen reports whether a key is one that an endpoint chooses.
func IsChosen(key uint64) bool { return key&chosenBit != 0 }

// ChosenID is the id of a key that an endpoint has chosen.
func ChosenID(key uint64) int { return int(key & (ChosenIDs - 1)) }

// RegionOf is where the region with a key is. False: no region has such a key.
func RegionOf(key uint64) (r Region, ok bool) {
	number := key
	switch {
	case !IsChosen(key) && key > MaxKey:
		return r, false
	case !IsChosen(key):
		r.Own = key < optimised
	case key&cachedBit != 0:
		number, r.Offset = key&cachedLACs, key>>cachedShift&cachedOffset
		r.Own = key&ownBit != 0
	default:
		number, r.Events = LACs+key&(ChosenIDs-1), key&eventsBit != 0
		if r.Own = key&ownBit != 0; r.Own && number >= optimised {
			return r, false
		}
	}
	if r.Own {
		r.Write, r.Read = indexOwnWrite+uint32(number), indexOwnRead+uint32(number)
	} else {
		r.Write, r.Read, r.MatchBits = IndexWrite, IndexRead, key&^(chosenBit|notifyBit)
	}
	return r, true
}

// NotifyOf is where writes with data to the region with a key go: all to the shared index. False: no region with such a
// key takes them.
func NotifyOf(key uint64) (Region, bool) {
	r := Region{Write: IndexWrite, Read: IndexRead, MatchBits: key | notifyBit}
	if !IsChosen(key) {
		return r, key <= MaxKey
	}
	r.MatchBits = key&^chosenBit | notifyBit | eventsBit
	return r, key&(ownBit|cachedBit) == 0
}
