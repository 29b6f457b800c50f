package loopback

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/mpsc"
)

// Sizes of the parts of a segment, in bytes.
const (
	headerBytes  = uint64(unsafe.Sizeof(hot.Segment{}))
	ringHeader   = uint64(unsafe.Sizeof(hot.RxRing{}))
	attachBytes  = uint64(unsafe.Sizeof(hot.Attach{}))
	bounceHeader = uint64(unsafe.Sizeof(hot.Bounce{}))
	keyBytes     = uint64(unsafe.Sizeof(hot.Key{}))
	claimBytes   = uint64(unsafe.Sizeof(hot.Claim{}))
)

// mapping is memory from mmap. The zero mapping is none.
type mapping struct {
	base unsafe.Pointer
	size uintptr
}

// rangePool holds address ranges of this process, by size, that no mapping uses.
// They are never unmapped, only used again, because threads may read there at
// any later time.
type rangePool struct {
	sync.Mutex // taken when interfaces are opened and closed, and when peers come and go
	free       map[uintptr][]unsafe.Pointer
}

// ownRanges were closed interfaces': a thread that polled for messages while
// another closed the interface may still poll there. There are as many as
// interfaces were open at a time. peerRanges were the segments of peers that are
// gone; as many as endpoints had peers at a time.
var ownRanges, peerRanges rangePool

// mapFile maps a file, over a range of the pool if there is one.
func (p *rangePool) mapFile(fd int, size uint64) (mapping, error) {
	m := mapping{size: uintptr(size)}
	p.Lock()
	if free := p.free[m.size]; len(free) != 0 {
		m.base, p.free[m.size] = free[len(free)-1], free[:len(free)-1]
	}
	p.Unlock()
	if m.base == nil {
		return mapFile(fd, size)
	}
	_, err := unix.MmapPtr(fd, 0, m.base, m.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		m.retire(p)
		return mapping{}, err
	}
	return m, nil
}

// give takes a range into which detach has put zeroed memory.
func (p *rangePool) give(m mapping) {
	p.Lock()
	defer p.Unlock()
	if p.free == nil {
		p.free = map[uintptr][]unsafe.Pointer{}
	}
	p.free[m.size] = append(p.free[m.size], m.base)
}

// retire puts zeroed memory in the mapping's place and keeps the range in a pool.
// What cannot be replaced stays as it is.
func (m *mapping) retire(p *rangePool) {
	if m.base == nil || m.detach() != nil {
		return
	}
	p.give(*m)
	*m = mapping{}
}

func mapFile(fd int, size uint64) (mapping, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, err
	}
	return mapping{p, uintptr(size)}, nil
}

// unmap ends the mapping; its addresses may not be used any more.
func (m *mapping) unmap() {
	if m.base != nil {
		_ = mem.Unmap(unsafe.Slice((*byte)(m.base), m.size)) // what cannot be unmapped stays
		*m = mapping{}
	}
}

// detach puts zeroed private memory in the mapping's place, so that the file's
// memory can go while threads still read and write at its addresses: they see
// an empty ring of a receiver that welcomes nothing, and what they write is lost.
func (m *mapping) detach() error {
	_, err := unix.MmapPtr(-1, 0, m.base, m.size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("loopback: detach %d bytes: %w", m.size, err)
	}
	return nil
}

// detachKeeping is detach, but some words in the mapping keep their values: a reader sees no others. A
// change that another thread makes meanwhile may be undone.
func (m *mapping) detachKeeping(words *[4]uint64) error {
	p, err := unix.MmapPtr(-1, 0, nil, m.size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("loopback: detach %d bytes: %w", m.size, err)
	}
	kept := (*[4]uint64)(unsafe.Add(p, uintptr(unsafe.Pointer(words))-uintptr(m.base)))
	for n := range words {
		kept[n] = atomic.LoadUint64(&words[n])
	}
	if _, err := unix.MremapPtr(p, m.size, m.base, m.size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(p, m.size)
		return fmt.Errorf("loopback: detach %d bytes: %w", m.size, err)
	}
	return nil
}

// readHeader reads a private copy of a segment's header.
func readHeader(fd int) (*hot.Segment, error) {
	h := new(hot.Segment)
	n, err := unix.Pread(fd, unsafe.Slice((*byte)(unsafe.Pointer(h)), headerBytes), 0)
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	if n != int(headerBytes) {
		return nil, fmt.Errorf("header of %d bytes: %w: %w", n, hw.ErrInvalid, errMalformed)
	}
	return h, nil
}

func (s *segment) at(offset uint64) unsafe.Pointer { return unsafe.Add(s.mem.base, offset) }

func (s *segment) header() *hot.Segment { return (*hot.Segment)(s.mem.base) }

// rxState is written by the owner (or), read by every sender (load).
func (s *segment) rxState() *uint32 { return &s.header().RxState }

// armed is written by the owner, read by senders after publishing.
func (s *segment) armed() *uint32 { return &s.header().Armed }

// gone reports whether the owner closed the interface.
func (s *segment) gone() bool { return atomic.LoadUint32(s.rxState())&hot.RxGone != 0 }

// ringsInUse is the number of inbound rings in use: raised by senders, CAS; read by
// the owner's pollers, relaxed.
func (s *segment) ringsInUse() *uint32 { return &s.header().RxRings }

// ring returns inbound ring n, less than hot.RxRings.
func (s *segment) ring(n uint32) mpsc.Ring {
	header := s.at(s.geo.ringOffset + uint64(n)*ringBytes(s.geo.ringLog2))
	return mpsc.NewView(unsafe.Add(header, ringHeader), header, s.geo.ringLog2, hot.SlotBytes)
}

// attach returns entry i, less than attachCount.
func (s *segment) attach(i uint32) *hot.Attach {
	return (*hot.Attach)(s.at(s.geo.attachOffset + uint64(i)*attachBytes))
}

// attachWord is state and pid of an entry as the one word that claims it.
func attachWord(a *hot.Attach) *uint64 { return (*uint64)(unsafe.Pointer(&a.State)) }

// key returns entry i, less than keyCount.
func (s *segment) key(i uint32) *hot.Key {
	return (*hot.Key)(s.at(s.geo.keyOffset + uint64(i)*keyBytes))
}

// claim returns claim i, less than hot.Claims, of a segment with keys.
func (s *segment) claim(i uint32) *hot.Claim {
	return (*hot.Claim)(s.at(s.geo.keyOffset + uint64(s.geo.keyCount)*keyBytes + uint64(i)*claimBytes))
}

// proof returns what the segment says about its owner's i-th authorisation key,
// i less than authCount. Written before the file gets its name.
func (s *segment) proof(i uint32) *[authBytes]byte {
	return (*[authBytes]byte)(s.at(s.geo.authOffset + uint64(i)*authBytes))
}

// bounce returns the header of buffer i, less than bounceCount.
func (s *segment) bounce(i uint32) *hot.Bounce {
	return (*hot.Bounce)(s.at(s.geo.bounceOffset + uint64(i)*uint64(s.geo.bounceStride)))
}

// payload returns the first n bytes, at most bounceBytes, of buffer b.
func payload(b *hot.Bounce, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), bounceHeader)), n)
}

// addrOf is the number of an address.
func addrOf(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
