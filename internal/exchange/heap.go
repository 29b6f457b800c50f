package exchange

// heap is a binary heap of peers by key, the least first. A peer is in it once.
type heap struct {
	keys  []uint64
	peers []int32
	at    []int32 // of each peer in peers, plus 1; 0: not in the heap
}

// newHeap returns an empty heap for peers 0 to n-1.
func newHeap(n int) heap {
	return heap{keys: make([]uint64, n), peers: make([]int32, 0, n), at: make([]int32, n)}
}

func (h *heap) len() int { return len(h.peers) }

// has reports whether a peer is in the heap.
func (h *heap) has(p int32) bool { return h.at[p] != 0 }

// least returns the first peer and its key. The heap is not empty.
func (h *heap) least() (p int32, key uint64) { return h.peers[0], h.keys[h.peers[0]] }

// push puts a peer that is not in the heap into it.
func (h *heap) push(p int32, key uint64) {
	h.keys[p] = key
	h.peers = append(h.peers, p)
	h.at[p] = int32(len(h.peers))
	h.up(len(h.peers) - 1)
}

// set changes a peer's key.
func (h *heap) set(p int32, key uint64) {
	if h.keys[p] == key {
		return
	}
	h.keys[p] = key
	i := int(h.at[p]) - 1
	h.up(i)
	h.down(int(h.at[p]) - 1)
}

// remove takes a peer out.
func (h *heap) remove(p int32) {
	i, last := int(h.at[p])-1, len(h.peers)-1
	h.swap(i, last)
	h.peers = h.peers[:last]
	h.at[p] = 0
	if i < last {
		moved := h.peers[i]
		h.up(i)
		h.down(int(h.at[moved]) - 1)
	}
}

// clear empties the heap.
func (h *heap) clear() {
	h.peers = h.peers[:0]
	clear(h.at)
}

func (h *heap) swap(i, j int) {
	a, b := h.peers[i], h.peers[j]
	h.peers[i], h.peers[j] = b, a
	h.at[a], h.at[b] = int32(j+1), int32(i+1)
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h.keys[h.peers[parent]] <= h.keys[h.peers[i]] {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.peers) {
			return
		}
		if child+1 < len(h.peers) && h.keys[h.peers[child+1]] < h.keys[h.peers[child]] {
			child++
		}
		if h.keys[h.peers[i]] <= h.keys[h.peers[child]] {
			return
		}
		h.swap(i, child)
		i = child
	}
}
