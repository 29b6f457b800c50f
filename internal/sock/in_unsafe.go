package sock

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
)

// mmsghdr is the kernel's struct of that name.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   uint32
}

const (
	inMessages = 16      // messages of one recvmmsg
	inBytes    = 1 << 16 // of one message, which the kernel may have joined of many datagrams
	inControl  = 256     // bytes of control messages
)

// In receives datagrams. What Message returns lies in its buffers, until the
// next Receive.
type In struct {
	hdrs    [inMessages]mmsghdr
	iovs    [inMessages]unix.Iovec
	names   [inMessages]unix.RawSockaddrInet6
	control [inMessages][inControl]byte
	bytes   []byte
	n       int
	ask     int  // messages that the next Receive asks for
	single  bool // the last Receive asked for one

	messages [inMessages]Message // of the last Receive, that came by a bypass or an inbox
	direct   int                 // number of them; 0: all came by the kernel
}

// NewIn makes the buffers. Errors are those of package mem.
func NewIn() (*In, error) {
	b, err := mem.Map(inMessages*inBytes, mem.NoReserve)
	if err != nil {
		return nil, err
	}
	in := &In{bytes: b, ask: inMessages}
	for i := range in.hdrs {
		in.iovs[i].Base = &b[i*inBytes]
		in.iovs[i].SetLen(inBytes)
		h := &in.hdrs[i].hdr
		h.Iov = &in.iovs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&in.names[i]))
		h.Control = &in.control[i][0]
		in.prepare(i)
	}
	return in, nil
}

func (in *In) prepare(i int) {
	h := &in.hdrs[i].hdr
	h.Namelen = unix.SizeofSockaddrInet6
	h.SetControllen(inControl)
	h.Flags = 0
}

// Free gives the buffers back.
func (in *In) Free() {
	for i := range in.iovs {
		in.iovs[i].Base = nil
	}
	_ = mem.Unmap(in.bytes)
	in.bytes = nil
}

// Single has the next Receive take one message only: behind the first one it does
// not poll again, which costs as much as a poll of an empty socket.
func (in *In) Single() { in.ask = 1 }

// Stamped reports whether messages of the last Receive may have a Stamp.
func (in *In) Stamped() bool { return in.direct == 0 }

// WasSingle reports whether the last Receive asked the kernel for one message.
func (in *In) WasSingle() bool { return in.single }

// Receive takes what has arrived, up to 16 messages, and returns how many there
// were; full: there may be more. It never waits. now is the time since
// any moment: a socket with a bypass or an inbox polls the kernel's now and then only. Errors are pending
// errors of the socket, which [Socket.Errors] explains.
func (s *Socket) Receive(in *In, now time.Duration) (n int, full bool, err error) {
	in.direct, in.single = 0, false
	switch {
	case s.bypass != nil:
		return s.receiveEither(in, now)
	case s.inbox != nil:
		return s.receiveInbox(in, now)
	}
	return s.receiveSockets(in, now)
}

// receiveKernel takes what the kernel has at one of the socket's descriptors.
func (s *Socket) receiveKernel(in *In, fd int) (n int, full bool, err error) {
	for i := range in.n { // what the kernel wrote last time
		in.prepare(i)
	}
	in.n = 0
	ask := in.ask
	in.ask, in.single = inMessages, ask == 1
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&in.hdrs[0])), uintptr(ask),
		unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		if errno == unix.EAGAIN || errno == unix.EINTR {
			return 0, false, nil
		}
		return 0, false, errno
	}
	in.n = int(r)
	return int(r), int(r) == ask, nil
}

// Message is what came as one message: datagrams of one peer, each of Segment
// bytes but the last, which may be shorter.
type Message struct {
	From    Addr
	Bytes   []byte
	Segment int
	Marked  bool // ECN: congestion experienced
	// Driver is when the interface's driver had it, by CLOCK_MONOTONIC, of what a
	// bypass received, or when the kernel put it into an inbox; 0: unknown.
	Driver time.Duration
	Stamp  time.Duration // when the kernel got it, by the wall clock, as time since 1970; 0: unknown
	// Hardware is when the interface got it, by its own clock; 0: not known. See
	// EnableStamps.
	Hardware time.Duration
}

// Message reads message i of the last Receive into m. It returns false if the
// datagram is not to be used: cut off, or from an address of no family of ours.
func (in *In) Message(i int, m *Message) bool {
	if in.direct > 0 {
		*m = in.messages[i]
		return true
	}
	h := &in.hdrs[i]
	if h.hdr.Flags&unix.MSG_TRUNC != 0 || h.n > inBytes {
		return false
	}
	name := unsafe.Slice((*byte)(unsafe.Pointer(&in.names[i])), unix.SizeofSockaddrInet6)
	from, err := Parse(name[:min(h.hdr.Namelen, unix.SizeofSockaddrInet6)])
	if err != nil {
		return false
	}
	*m = Message{From: from, Bytes: in.bytes[i*inBytes : i*inBytes+int(h.n) : i*inBytes+int(h.n)], Segment: int(h.n)}
	in.readControl(in.control[i][:min(uint64(h.hdr.Controllen), inControl)], m)
	return m.Segment > 0 || h.n == 0
}

func (in *In) readControl(b []byte, m *Message) {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			return
		}
		data := b[unix.SizeofCmsghdr:n]
		switch {
		case h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(data) >= 2:
			m.Segment = int(binary.NativeEndian.Uint16(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && len(data) >= 1,
			h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS && len(data) >= 1:
			m.Marked = data[0]&3 == 3 // the low byte comes first: little endian
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING:
			_, m.Hardware = readStamps(data)
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16:
			m.Stamp = time.Duration(binary.NativeEndian.Uint64(data))*time.Second + time.Duration(
				binary.NativeEndian.Uint64(data[8:]))
		}
		if n = unix.CmsgSpace(len(data)); n > len(b) {
			return
		}
		b = b[n:]
	}
}
