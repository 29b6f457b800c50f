package exchange

// heap is a binary heap of peers that have records, by key, the least first. A peer is in it once.
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
	h.entries = append(h.entries, heapEntry{key: key, slot: s})
	h.at[s] = int32(len(h.entries))
	h.up(len(h.entries) - 1)
}

// set changes the key of a peer that is in the heap.
func (h *heap) set(p int32, key uint64) {
	s := h.known.slot(p)
	i := h.place(s)
	if h.entries[i].key == key {
		return
	}
	h.entries[i].key = key
	h.up(i)
	h.down(h.place(s))
}

// remove takes out a peer that is in the heap.
func (h *heap) remove(p int32) {
	s := h.known.slot(p)
	i, last := h.place(s), len(h.entries)-1
	h.swap(i, last)
	h.entries = h.entries[:last]
	h.at[s] = 0
	if i < last {
		moved := h.entries[i].slot
		h.up(i)
		h.down(h.place(moved))
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

func (h *heap) swap(i, j int) {
	a, b := h.entries[i], h.entries[j]
	h.entries[i], h.entries[j] = b, a
	h.at[a.slot], h.at[b.slot] = int32(j+1), int32(i+1)
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h.entries[parent].key <= h.entries[i].key {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.entries) {
			return
		}
		if child+1 < len(h.entries) && h.entries[child+1].key < h.entries[child].key {
			child++
		}
		if h.entries[i].key <= h.entries[child].key {
			return
		}
		h.swap(i, child)
		i = child
	}
}
