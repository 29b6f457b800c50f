package exchange

// heapWidth is how many children an entry of a heap has: those of one are in a cache line or two.
const heapWidth = 4

// heap is a heap of peers that have records, by key, the least first. A peer is in it once.
type heap struct {
	known   *records
	entries []heapEntry
	at      []int32 // by slot: the entry, plus 1; 0 or beyond the end: not in the heap
}

type heapEntry struct {
	key  uint64
	slot int32
}

// newHeap returns an empty heap.
func newHeap(known *records) heap { return heap{known: known} }

func (h *heap) len() int { return len(h.entries) }

// place is a slot's entry, below 0: it is not in the heap.
func (h *heap) place(s int32) int {
	if s < 0 || int(s) >= len(h.at) {
		return -1
	}
	return int(h.at[s]) - 1
}

// has reports whether a peer is in the heap.
func (h *heap) has(p int32) bool { return h.place(h.known.slot(p)) >= 0 }

// least returns the first peer and its key. The heap is not empty.
func (h *heap) least() (p int32, key uint64) { return h.known.ids[h.entries[0].slot], h.entries[0].key }

// push puts a peer that is not in the heap into it.
func (h *heap) push(p int32, key uint64) {
	s := h.known.slot(p)
	for int(s) >= len(h.at) {
		h.at = append(h.at, 0)
	}
	e := heapEntry{key: key, slot: s}
	h.entries = append(h.entries, e)
	h.up(len(h.entries)-1, e)
}

// set changes the key of a peer that is in the heap.
func (h *heap) set(p int32, key uint64) {
	s := h.known.slot(p)
	h.fill(h.place(s), heapEntry{key: key, slot: s})
}

// remove takes out a peer that is in the heap.
func (h *heap) remove(p int32) {
	s := h.known.slot(p)
	i, last := h.place(s), len(h.entries)-1
	moved := h.entries[last]
	h.entries = h.entries[:last]
	h.at[s] = 0
	if i < last {
		h.fill(i, moved)
	}
}

// clear empties the heap, and has room for so many peers.
func (h *heap) clear(room int) {
	h.entries = h.entries[:0]
	if cap(h.at) < room || cap(h.at) > 2*room+keptRecords {
		h.entries, h.at = make([]heapEntry, 0, room), make([]int32, room)
	}
	h.at = h.at[:room]
	clear(h.at)
}

// fill puts an entry in the place of another one.
func (h *heap) fill(i int, e heapEntry) {
	if e.key < h.entries[i].key {
		h.up(i, e)
	} else {
		h.down(i, e)
	}
}

// put writes an entry to its place.
func (h *heap) put(i int, e heapEntry) {
	h.entries[i] = e
	h.at[e.slot] = int32(i + 1)
}

// up puts an entry in a place or above it, where it belongs.
func (h *heap) up(i int, e heapEntry) {
	for i > 0 {
		parent := (i - 1) / heapWidth
		if h.entries[parent].key <= e.key {
			break
		}
		h.put(i, h.entries[parent])
		i = parent
	}
	h.put(i, e)
}

// down puts an entry in a place or below it, where it belongs.
func (h *heap) down(i int, e heapEntry) {
	for {
		child := heapWidth*i + 1
		if child >= len(h.entries) {
			break
		}
		least := child
		for c := child + 1; c < min(child+heapWidth, len(h.entries)); c++ {
			if h.entries[c].key < h.entries[least].key {
				least = c
			}
		}
		if e.key <= h.entries[least].key {
			break
		}
		h.put(i, h.entries[least])
		i = least
	}
	h.put(i, e)
}
