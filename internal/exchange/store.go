package exchange

// Store is the memory in which a member keeps pieces for others: so many places of one
// piece each. Engines of one endpoint share it. It is not safe for concurrent use.
type Store struct {
	piece int64
	data  [][]byte // by place, nil before its first use
	free  []int32
}

// NewStore returns a store for at most so many bytes, in pieces of a length; both are above 0.
// Memory is taken when a place is first used.
func NewStore(bytes, piece int64) *Store {
	n := int32(bytes / piece)
	s := &Store{piece: piece, data: make([][]byte, n), free: make([]int32, 0, n)}
	for i := n - 1; i >= 0; i-- {
		s.free = append(s.free, i)
	}
	return s
}

// Data is the memory of a place.
func (s *Store) Data(place int) []byte {
	if s.data[place] == nil {
		s.data[place] = make([]byte, s.piece)
	}
	return s.data[place]
}

// Free returns how many places are free.
func (s *Store) Free() int { return len(s.free) }

// take takes a place, -1: none is free.
func (s *Store) take() int32 {
	n := len(s.free)
	if n == 0 {
		return -1
	}
	place := s.free[n-1]
	s.free = s.free[:n-1]
	return place
}

// put gives a place back.
func (s *Store) put(place int32) { s.free = append(s.free, place) }
