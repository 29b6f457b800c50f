package sock

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
)

const (
	outMessages = 32
	outPieces   = 256
	outArena    = 256 << 10
	outControl  = 64 // bytes of control messages
	maxSegments = 64 // of one message: the kernel's UDP_MAX_SEGMENTS
	maxJoined   = 65000
)

// NoOwner is the owner of datagrams to strangers, which go by the kernel: a bypass keeps what
// it knows of a peer.
const NoOwner = 1<<32 - 1

// Out collects datagrams and sends them. A datagram is one or two pieces: bytes
// of the arena, which Take hands out, and bytes that the caller keeps as they
// are until Flush. Or it is one of a row, which is a piece of the caller's.
type Out struct {
	hdrs    [outMessages]mmsghdr
	iovs    [outPieces]unix.Iovec
	names   [outMessages][sizeIPv6]byte
	control [outMessages][outControl]byte
	msgs    [outMessages]outMessage
	n       int // messages
	pieces  int
	arena   []byte
	taken   int
	impair  Impairment
	stamp   bool // see FlushStamped
	train   Train

	// Failed are the datagrams of the last Flush that the kernel refused.
	Failed []Failure
	// Sent and Calls count datagrams and system calls, Bypassed the datagrams
	// that a bypass took.
	Sent, Calls, Bypassed uint64
}

// outMessage is what the kernel's structures do not have of a message.
type outMessage struct {
	to       Addr
	owner    uint64
	segment  int // size of all datagrams but the last
	last     int // size of the last one
	segments int
	total    int
}

// Failure is what became of a message.
type Failure struct {
	Owner uint64 // as given to Add
	To    Addr
	Size  int // bytes of one datagram
	Err   unix.Errno
}

// Impairment stands between Flush and the kernel, in tests: it gets every
// datagram and sends what it likes. It must not keep packet.
type Impairment func(packet []byte, to *Addr, send func(packet []byte, to *Addr))

// NewOut makes the buffers. Errors are those of package mem. impair is nil
// outside tests.
func NewOut(impair Impairment) (*Out, error) {
	b, err := mem.Map(outArena, mem.NoReserve)
	if err != nil {
		return nil, err
	}
	return &Out{arena: b, impair: impair}, nil
}

// Free gives the buffers back.
func (o *Out) Free() {
	clear(o.iovs[:])
	_ = mem.Unmap(o.arena)
	o.arena = nil
}

// Full reports whether there is no room for a datagram of up to n bytes of the
// arena: Flush first.
func (o *Out) Full(n int) bool {
	return o.n == outMessages || o.pieces+2 > outPieces || o.taken+n > outArena
}

// Empty reports whether there is nothing to flush.
func (o *Out) Empty() bool { return o.n == 0 }

// Take returns n bytes of the arena, for a datagram that is added next. Full
// was false.
func (o *Out) Take(n int) []byte {
	return o.arena[o.taken : o.taken+n : o.taken+n]
}

// Add adds the datagram of head, which was taken, and tail, which may be
// empty. owner is given back in a Failure. alone forbids to join it with others:
// it may be larger than what the path takes.
func (o *Out) Add(s *Socket, to *Addr, owner uint64, head, tail []byte, alone bool) {
	o.taken += len(head)
	size := len(head) + len(tail)
	m := o.joinable(s, to, owner, size)
	if m == nil || alone {
		m = o.begin(s, to, owner, size)
		if alone {
			m.segments = maxSegments // full
		}
	} else {
		m.segments++
		m.last = size
		m.total += size
	}
	o.piece(head)
	if len(tail) > 0 {
		o.piece(tail)
	}
}

// joinable returns the last message if a datagram of size bytes may join it.
func (o *Out) joinable(s *Socket, to *Addr, owner uint64, size int) *outMessage {
	if o.n == 0 || s.noGSO {
		return nil
	}
	m := &o.msgs[o.n-1]
	if m.owner != owner || m.last != m.segment || size > m.segment || m.segments >= maxSegments ||
		m.total+size > maxJoined || m.to != *to {
		return nil
	}
	return m
}

// MaxTrain returns how many datagrams of size bytes the kernel takes as one message.
func MaxTrain(size int) int { return min(maxSegments, maxJoined/size) }

// Joinable returns how many datagrams of owner may join the last message: of size
// bytes as those in it, each of which takes so many bytes of the arena.
func (o *Out) Joinable(s *Socket, owner uint64, size, taken int) int {
	if o.n == 0 || s.noGSO || o.pieces == outPieces {
		return 0
	}
	m := &o.msgs[o.n-1]
	if m.owner != owner || m.segment != size || m.last != size {
		return 0
	}
	return max(min(maxSegments-m.segments, (maxJoined-m.total)/m.segment, (outArena-o.taken)/max(taken, 1)), 0)
}

// Join adds n datagrams, as many as Joinable has returned, to the last message. They follow one
// another in row, which was taken.
func (o *Out) Join(row []byte, n int) {
	o.taken += len(row)
	o.join(row, n)
}

// RowRoom returns how many datagrams of owner, of size bytes each, AddRow takes. Full was
// false.
func (o *Out) RowRoom(s *Socket, owner uint64, size int) int {
	if n := o.Joinable(s, owner, size, 0); n > 0 || s.noGSO {
		return n
	}
	return MaxTrain(size)
}

// AddRow adds n datagrams of one size, which follow one another in row: to the last message
// if they may join it. They are no more than RowRoom has returned. The caller keeps row as it is until Flush.
func (o *Out) AddRow(s *Socket, to *Addr, owner uint64, row []byte, n int) {
	if size := len(row) / n; o.Joinable(s, owner, size, 0) == 0 {
		m := o.begin(s, to, owner, size)
		m.segments, m.total = 0, 0
	}
	o.join(row, n)
}

func (o *Out) join(row []byte, n int) {
	m := &o.msgs[o.n-1]
	m.segments += n
	m.total += len(row)
	o.piece(row)
}

func (o *Out) begin(s *Socket, to *Addr, owner uint64, size int) *outMessage {
	m := &o.msgs[o.n]
	*m = outMessage{to: *to, owner: owner, segment: size, last: size, segments: 1, total: size}
	h := &o.hdrs[o.n].hdr
	*h = unix.Msghdr{Name: &o.names[o.n][0], Namelen: to.put(&o.names[o.n], s.family), Iov: &o.iovs[o.pieces]}
	o.n++
	return m
}

func (o *Out) piece(b []byte) {
	v := &o.iovs[o.pieces]
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
	o.pieces++
	h := &o.hdrs[o.n-1].hdr
	h.SetIovlen(int(h.Iovlen) + 1)
}

// Flush sends what was added. Datagrams that the kernel refuses are in Failed;
// they are gone like those that a network loses.
func (o *Out) Flush(s *Socket) {
	o.Failed = o.Failed[:0]
	if o.impair != nil {
		o.flushImpaired(s)
		return
	}
	if s.bypass != nil {
		o.divert(s.bypass)
	}
	for i := range o.n {
		o.end(s, i)
	}
	for i, again := 0, false; i < o.n; {
		r, errno := o.send(s, i)
		o.Calls++
		switch {
		case errno == 0:
			i += int(r)
			again = false
		case errno == unix.EINTR || !again && pending(errno):
			again = true // of an earlier datagram: it has been reported now
		case errno == unix.EIO && o.msgs[i].total > o.msgs[i].segment:
			s.noGSO = true // the interface cannot compute checksums
			o.sendOne(s, i)
			i++
			again = false
		default:
			o.fail(i, errno)
			i++
			again = false
		}
	}
	o.reset()
}

// send gives the kernel the messages from i on that go to one socket, and returns how
// many it took. What is alone and one piece goes by a call that has less to copy.
func (o *Out) send(s *Socket, i int) (n uintptr, errno unix.Errno) {
	h, to := &o.hdrs[i].hdr, &o.msgs[i].to
	fd, count := s.FD, o.n-i
	s.near.vote(to)
	if s.near.used {
		fd, count = o.nearest(s, i)
	}
	if o.n == 1 && h.Iovlen == 1 && h.Controllen == 0 {
		v := h.Iov
		_, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(v.Base)), uintptr(v.Len),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(h.Name)), uintptr(h.Namelen))
		return 1, errno
	}
	n, _, errno = unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&o.hdrs[i])), uintptr(count),
		unix.MSG_DONTWAIT, 0, 0)
	return n, errno
}

// nearest chooses the socket for message i, and returns how many from there on go the
// same way. Stamps are numbered by socket, so their datagrams go the usual way.
func (o *Out) nearest(s *Socket, i int) (fd, count int) {
	if o.stamp || !s.near.has(&o.msgs[i].to) {
		for count = 1; i+count < o.n && !s.near.has(&o.msgs[i+count].to); count++ {
		}
		return s.FD, count
	}
	for ; i+count < o.n && s.near.has(&o.msgs[i+count].to); count++ {
		h := &o.hdrs[i+count].hdr
		h.Name, h.Namelen = nil, 0
	}
	return s.near.fd, count
}

// pending reports whether an error may be that of an earlier datagram.
func pending(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE, unix.EPROTO, unix.EOPNOTSUPP,
		unix.EACCES, unix.ENOPROTOOPT, unix.EHOSTDOWN, unix.ENONET:
		return true
	}
	return false
}

func (o *Out) fail(i int, errno unix.Errno) {
	m := &o.msgs[i]
	o.Failed = append(o.Failed, Failure{Owner: m.owner, To: m.to, Size: m.segment, Err: errno})
}

func (o *Out) reset() {
	o.n, o.pieces, o.taken = 0, 0, 0
}

// end writes the control messages of message i.
func (o *Out) end(s *Socket, i int) {
	m, h, c := &o.msgs[i], &o.hdrs[i].hdr, &o.control[i]
	o.Sent++
	n := 0
	if m.total > m.segment {
		o.Sent += uint64((m.total - 1) / m.segment)
		b := cmsg(c[n:], unix.SOL_UDP, unix.UDP_SEGMENT, 2)
		binary.NativeEndian.PutUint16(b, uint16(m.segment))
		n += unix.CmsgSpace(2)
	}
	n += s.putSource(c[n:])
	n += o.putStamp(c[n:])
	if n > 0 {
		h.Control = &c[0]
		h.SetControllen(n)
	}
}

// putSource has the datagram come from the socket's source, if it has one.
func (s *Socket) putSource(c []byte) int {
	switch {
	case s.source.IsZero():
		return 0
	case s.family == unix.AF_INET:
		b := cmsg(c, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		clear(b)
		copy(b[4:8], s.source.raw[4:8]) // ipi_spec_dst
		return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
	}
	b := cmsg(c, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	clear(b)
	var name [sizeIPv6]byte
	s.source.put(&name, s.family)
	copy(b[:16], name[8:24])
	return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
}

// cmsg starts a control message in c and returns its data.
func cmsg(c []byte, level, kind int32, n int) []byte {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	*h = unix.Cmsghdr{Level: level, Type: kind}
	h.SetLen(unix.CmsgLen(n))
	return c[unix.CmsgLen(0):unix.CmsgLen(n)]
}

// each calls f with the datagrams of message i, copied together.
func (o *Out) each(i int, f func(packet []byte)) {
	m, h := &o.msgs[i], &o.hdrs[i].hdr
	joined := make([]byte, 0, m.total)
	for _, v := range unsafe.Slice(h.Iov, h.Iovlen) {
		joined = append(joined, unsafe.Slice(v.Base, v.Len)...)
	}
	for len(joined) > 0 {
		n := min(m.segment, len(joined))
		f(joined[:n:n])
		joined = joined[n:]
	}
}

// sendOne sends the datagrams of message i one by one.
func (o *Out) sendOne(s *Socket, i int) {
	o.each(i, func(packet []byte) {
		if errno := s.sendPlain(packet, &o.msgs[i].to); errno != 0 {
			o.fail(i, errno)
		}
	})
}

func (s *Socket) sendPlain(packet []byte, to *Addr) unix.Errno {
	var name [sizeIPv6]byte
	var c [outControl]byte
	iov := unix.Iovec{Base: unsafe.SliceData(packet)}
	iov.SetLen(len(packet))
	h := unix.Msghdr{Name: &name[0], Namelen: to.put(&name, s.family), Iov: &iov}
	h.SetIovlen(1)
	if n := s.putSource(c[:]); n > 0 {
		h.Control = &c[0]
		h.SetControllen(n)
	}
	for range 2 {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(s.FD), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		if errno == 0 || !pending(errno) {
			return errno
		}
	}
	return 0
}

// flushImpaired hands every datagram to the impairment.
func (o *Out) flushImpaired(s *Socket) {
	for i := range o.n {
		o.each(i, func(packet []byte) {
			o.Sent++
			o.impair(packet, &o.msgs[i].to, func(p []byte, to *Addr) {
				if errno := s.sendPlain(p, to); errno == unix.EMSGSIZE {
					o.fail(i, errno)
				}
			})
		})
	}
	o.reset()
}
