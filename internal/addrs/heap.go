package addrs

// minHeap is a binary heap of numbers, the smallest first (CLRS, chapter
// "Heapsort").
type minHeap []uint32

// push adds a number; numbers may be in the heap several times.
func (h *minHeap) push(x uint32) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] <= x {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
	*h = s
}

// pop removes the smallest number. The heap must not be empty.
func (h *minHeap) pop() uint32 {
	s := *h
	smallest := s[0]
	x := s[len(s)-1]
	s = s[:len(s)-1]
	i := 0
	for {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && s[c+1] < s[c] {
			c++
		}
		if x <= s[c] {
			break
		}
		s[i] = s[c]
		i = c
	}
	if len(s) > 0 {
		s[i] = x
	}
	*h = s
	return smallest
}
