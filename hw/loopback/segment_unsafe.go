package loopback

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/mpsc"
)

// Sizes of the parts of a segment, in bytes.
const (
	headerBytes  = uint64(unsafe.Sizeof(hot.Segment{}))
	attachBytes  = uint64(unsafe.Sizeof(hot.Attach{}))
	bounceHeader = uint64(unsafe.Sizeof(hot.Bounce{}))
)

// mapping is memory from mmap. The zero mapping is none.
type mapping struct {
	base unsafe.Pointer
	size uintptr
}

// ranges are the address ranges of this process's closed interfaces, by size.
// A thread that looked for messages while another closed the interface may read
// there at any later time, so they are never unmapped, only used again; there
// are as many as interfaces were open at a time.
var ranges struct {
	sync.Mutex // taken by Open and Close only
	free       map[uintptr][]unsafe.Pointer
}

// mapOwn maps the file of an own segment, over a range of ranges if there is one.
func mapOwn(fd int, size uint64) (mapping, error) {
	m := mapping{size: uintptr(size)}
	ranges.Lock()
	if free := ranges.free[m.size]; len(free) != 0 {
		m.base, ranges.free[m.size] = free[len(free)-1], free[:len(free)-1]
	}
	ranges.Unlock()
	if m.base == nil {
		return mapFile(fd, size)
	}
	_, err := unix.MmapPtr(fd, 0, m.base, m.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		m.retire()
		return mapping{}, err
	}
	return m, nil
}

// retire puts zeroed memory in the place of an own segment and keeps the range
// for the next one. What cannot be replaced stays as it is.
func (m *mapping) retire() {
	if m.base == nil || m.detach() != nil {
		return
	}
	ranges.Lock()
	defer ranges.Unlock()
	if ranges.free == nil {
		ranges.free = map[uintptr][]unsafe.Pointer{}
	}
	ranges.free[m.size] = append(ranges.free[m.size], m.base)
	*m = mapping{}
}

func mapFile(fd int, size uint64) (mapping, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, err
	}
	return mapping{p, uintptr(size)}, nil
}

// unmap ends the mapping; nobody may use its addresses any more.
func (m *mapping) unmap() {
	if m.base != nil {
		unix.MunmapPtr(m.base, m.size)
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

// gone tells whether the owner closed the interface.
func (s *segment) gone() bool { return atomic.LoadUint32(s.rxState())&hot.RxGone != 0 }

func (s *segment) ring() mpsc.Ring {
	return mpsc.NewView(s.at(s.geo.ringOffset), unsafe.Pointer(&s.header().RingTail), s.geo.ringLog2, hot.SlotBytes)
}

// tail is the ring's hint, which the consumer repairs.
func (s *segment) tail() *uint64 { return &s.header().RingTail }

// attach returns entry i, less than attachCount.
func (s *segment) attach(i uint32) *hot.Attach {
	return (*hot.Attach)(s.at(s.geo.attachOffset + uint64(i)*attachBytes))
}

// attachWord is state and pid of an entry as the one word that claims it.
func attachWord(a *hot.Attach) *uint64 { return (*uint64)(unsafe.Pointer(&a.State)) }

// bounce returns the header of buffer i, less than bounceCount.
func (s *segment) bounce(i uint32) *hot.Bounce {
	return (*hot.Bounce)(s.at(s.geo.bounceOffset + uint64(i)*uint64(s.geo.bounceStride)))
}

// payload returns the first n bytes, at most bounceBytes, of buffer b.
func payload(b *hot.Bounce, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), bounceHeader)), n)
}
