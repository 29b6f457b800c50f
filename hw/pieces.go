package hw

// MaxPieces is how many pieces one operation on pieces takes: as many segments as a
// system call takes on Linux (UIO_MAXIOV).
const MaxPieces = 1024

// Span is memory by its address, which the Go runtime does not follow. It is laid out as
// struct iovec.
type Span struct {
	Addr uint64
	Len  uint64 // bytes
}

// Pieces are pieces of this process's memory and of regions of a peer: Local[i] and
// Remote[i] are as long as each other. The first N count.
type Pieces struct {
	N      int
	Local  [MaxPieces]Span
	Remote [MaxPieces]Span   // by the addresses by which the owner names the regions
	Keys   [MaxPieces]uint64 // the names of the regions, as for KeyDirectory
}

// Add adds a piece of n bytes behind the others: to the last, if it goes on where that ends, else as one of its own. It
// reports false, and adds nothing, where there is no room.
func (p *Pieces) Add(local, remote, n, key uint64) bool {
	at := p.N
	if at != 0 && p.Keys[at-1] == key {
		if l, r := &p.Local[at-1], &p.Remote[at-1]; l.Addr+l.Len == local && r.Addr+r.Len == remote {
			l.Len += n
			r.Len += n
			return true
		}
	}
	if at == MaxPieces {
		return false
	}
	p.Local[at], p.Remote[at], p.Keys[at] = Span{Addr: local, Len: n}, Span{Addr: remote, Len: n}, key
	p.N++
	return true
}

// PieceMover is what endpoints implement with CapPieces: many short operations on
// named regions, at the cost of one.
type PieceMover interface {
	// MovePieces reads the pieces of the peer's memory into the local ones, or with write
	// the other way round, in their order, before it returns. Each must lie in the region that
	// it names, which must have been registered with the right for it. It returns the bytes that
	// are moved for certain, which are those of the first pieces, and less than all only with an error:
	// ErrKey for a piece that is refused, of which nothing was moved; ErrNoResource, when it is to
	// be tried again; ErrPermission, ErrPeerDead, ErrInvalid as of PeerMemory. p.Remote is
	// changed.
	MovePieces(p *Pieces, write bool) (moved uint64, err error)

	// MovePeer is MovePieces with addresses in the peer's process, as of PeerMemory, in the place of those
	// by which it names regions. p.Keys does not count: nothing is claimed, and the peer's regions are not
	// checked. p.Local and p.Remote are changed.
	MovePeer(p *Pieces, write bool) (moved uint64, err error)
}
