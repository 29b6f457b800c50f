package sock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SendError is what came back about a datagram that was sent.
type SendError struct {
	To     Addr       // where it was sent
	Quoted []byte     // how it began, as far as it came back; valid until the next call
	Err    unix.Errno // ECONNREFUSED: the port is not in use; EMSGSIZE; EHOSTUNREACH and the like
	MTU    int        // with EMSGSIZE, else 0
	Left   *Left      // nil, or no error at all: when a datagram left. To and Quoted mean nothing then.
	Local  bool       // from this host, not from the network
}

// Errors calls f with everything in the socket's error queue, up to a bound.
// A host that can forge ICMP messages can put anything there, but Quoted shows
// whether that host saw the datagram.
func (s *Socket) Errors(f func(*SendError)) {
	if s.near.used {
		errorsOf(s.near.fd, f)
	}
	errorsOf(s.FD, f)
}

func errorsOf(fd int, f func(*SendError)) {
	var payload [256]byte
	var control [256]byte
	var name unix.RawSockaddrInet6
	for range 64 {
		iov := unix.Iovec{Base: &payload[0]}
		iov.SetLen(len(payload))
		h := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet6, Iov: &iov,
			Control: &control[0]}
		h.SetIovlen(1)
		h.SetControllen(len(control))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)),
			unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errno != 0 {
			return
		}
		b := unsafe.Slice((*byte)(unsafe.Pointer(&name)), unix.SizeofSockaddrInet6)
		to, err := Parse(b[:min(h.Namelen, unix.SizeofSockaddrInet6)])
		t := SendError{To: to, Quoted: payload[:min(int(n), len(payload))]}
		if t.read(control[:min(uint64(h.Controllen), uint64(len(control)))]) && (err == nil || t.Left != nil) {
			f(&t)
		}
	}
}

// sockExtendedErr is the kernel's struct sock_extended_err.
type sockExtendedErr struct {
	errno           uint32
	origin          uint8
	kind, code, pad uint8
	info, data      uint32
}

// read finds the kernel's explanation.
func (t *SendError) read(b []byte) bool {
	var left Left
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			return false
		}
		data := b[unix.SizeofCmsghdr:n]
		ours := h.Level == unix.IPPROTO_IP && h.Type == unix.IP_RECVERR || h.Level == unix.IPPROTO_IPV6 &&
			h.Type == unix.IPV6_RECVERR
		if ours && len(data) >= int(unsafe.Sizeof(sockExtendedErr{})) {
			e := (*sockExtendedErr)(unsafe.Pointer(&data[0]))
			t.Err = unix.Errno(e.errno)
			t.Local = e.origin == unix.SO_EE_ORIGIN_LOCAL
			if t.Err == unix.EMSGSIZE {
				t.MTU = int(e.info)
			}
			if e.origin != unix.SO_EE_ORIGIN_TIMESTAMPING {
				return true
			}
			left.ID = e.data
			t.Left = &left
		} else if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING {
			left.Software, left.Hardware = readStamps(data)
		}
		if n = unix.CmsgSpace(len(data)); n > len(b) {
			break
		}
		b = b[n:]
	}
	return t.Left != nil
}
