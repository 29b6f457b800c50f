package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// errNetlink is a message of the kernel's that does not have the form it should.
var errNetlink = errors.New("malformed netlink message")

// request builds a netlink message: a body of a fixed size and attributes.
type request struct{ b []byte }

func newRequest(kind uint16, body []byte) *request {
	r := &request{b: make([]byte, unix.SizeofNlMsghdr, 128)}
	binary.NativeEndian.PutUint16(r.b[4:], kind)
	binary.NativeEndian.PutUint16(r.b[6:], unix.NLM_F_REQUEST)
	r.b = append(r.b, body...)
	return r
}

func (r *request) attribute(kind uint16, value []byte) {
	r.b = binary.NativeEndian.AppendUint16(r.b, uint16(unix.SizeofRtAttr+len(value)))
	r.b = binary.NativeEndian.AppendUint16(r.b, kind)
	r.b = append(r.b, value...)
	for len(r.b)%unix.NLMSG_ALIGNTO != 0 {
		r.b = append(r.b, 0)
	}
}

// bytes is the message with a sequence number.
func (r *request) bytes(sequence uint32) []byte {
	binary.NativeEndian.PutUint32(r.b, uint32(len(r.b)))
	binary.NativeEndian.PutUint32(r.b[8:], sequence)
	return r.b
}

// eachMessage calls f with the messages in b, without their headers.
func eachMessage(b []byte, f func(kind uint16, sequence uint32, body []byte)) error {
	for len(b) >= unix.SizeofNlMsghdr {
		n := int(binary.NativeEndian.Uint32(b))
		if n < unix.SizeofNlMsghdr || n > len(b) {
			return errNetlink
		}
		f(binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:n])
		b = b[min((n+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1), len(b)):]
	}
	return nil
}

// eachAttribute calls f with the attributes in b.
func eachAttribute(b []byte, f func(kind uint16, value []byte)) error {
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return errNetlink
		}
		f(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofRtAttr:n])
		b = b[min((n+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1), len(b)):]
	}
	return nil
}

// routeTo is what the kernel says of the way to a peer.
type routeTo struct {
	kind    uint8 // RTN_UNICAST and others
	iface   int
	gateway []byte // nil: the peer is on the interface's network
	wrapped bool   // in a tunnel
}

// parseRoute reads the body of an RTM_NEWROUTE message.
func parseRoute(b []byte) (r routeTo, err error) {
	if len(b) < unix.SizeofRtMsg {
		return r, errNetlink
	}
	r.kind = b[7]
	err = eachAttribute(b[unix.SizeofRtMsg:], func(kind uint16, v []byte) {
		switch {
		case kind == unix.RTA_OIF && len(v) >= 4:
			r.iface = int(binary.NativeEndian.Uint32(v))
		case kind == unix.RTA_GATEWAY && (len(v) == 4 || len(v) == 16):
			r.gateway = v
		case kind == unix.RTA_VIA && (len(v) == 2+4 || len(v) == 2+16):
			r.gateway = v[2:]
		case kind == unix.RTA_ENCAP, kind == unix.RTA_MULTIPATH:
			r.wrapped = true
		}
	})
	return r, err
}

// parseMTU reads the MTU in the body of an RTM_NEWLINK message, 0 if it has none.
func parseMTU(b []byte) (mtu int, err error) {
	if len(b) < unix.SizeofIfInfomsg {
		return 0, errNetlink
	}
	err = eachAttribute(b[unix.SizeofIfInfomsg:], func(kind uint16, v []byte) {
		if kind == unix.IFLA_MTU && len(v) >= 4 {
			mtu = int(binary.NativeEndian.Uint32(v))
		}
	})
	return mtu, err
}

// neighbour is what the kernel knows of one.
type neighbour struct {
	iface int
	ip    []byte
	mac   []byte
	state uint16
}

// parseNeighbour reads the body of an RTM_NEWNEIGH or RTM_DELNEIGH message.
func parseNeighbour(b []byte) (n neighbour, err error) {
	if len(b) < unix.SizeofNdMsg {
		return n, errNetlink
	}
	n.iface = int(int32(binary.NativeEndian.Uint32(b[4:])))
	n.state = binary.NativeEndian.Uint16(b[8:])
	err = eachAttribute(b[unix.SizeofNdMsg:], func(kind uint16, v []byte) {
		switch kind {
		case unix.NDA_DST:
			n.ip = v
		case unix.NDA_LLADDR:
			n.mac = v
		}
	})
	return n, err
}

// talker asks the kernel questions. It is used by one at a time.
type talker struct {
	fd       int
	sequence uint32
	buffer   [8192]byte
}

// open makes the socket, subscribed to groups. Errors are of the kernel.
func (t *talker) open(groups uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("netlink: %w", err)
	}
	t.fd = fd
	return nil
}

// ask returns the body of the answer, valid until the next question. The kernel answers
// before Sendto returns. Errors: of the kernel, ENOENT and ENETUNREACH if what was asked for does
// not exist.
func (t *talker) ask(r *request) (answer []byte, err error) {
	t.sequence++
	if err := unix.Sendto(t.fd, r.bytes(t.sequence), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	err = fmt.Errorf("netlink: no answer: %w", unix.ENOMSG)
	for answer == nil {
		n, e := unix.Read(t.fd, t.buffer[:])
		if e != nil {
			return nil, errors.Join(err, e)
		}
		e = eachMessage(t.buffer[:n], func(kind uint16, sequence uint32, body []byte) {
			switch {
			case sequence != t.sequence:
			case kind == unix.NLMSG_ERROR && len(body) >= 4:
				err = fmt.Errorf("netlink: %w", unix.Errno(-int32(binary.NativeEndian.Uint32(body))))
				answer = []byte{}
			default:
				answer, err = body, nil
			}
		})
		if e != nil {
			return nil, e
		}
	}
	return answer, err
}

// events calls f with what the kernel has reported since the last call. It
// returns false if something was missed.
func (t *talker) events(f func(kind uint16, body []byte)) bool {
	for range 64 {
		n, err := unix.Read(t.fd, t.buffer[:])
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return true
		}
		if err != nil || eachMessage(t.buffer[:n], func(kind uint16, _ uint32, body []byte) { f(kind, body) }) != nil {
			return false // ENOBUFS: there was no room
		}
	}
	return true
}

func (t *talker) close() { _ = unix.Close(t.fd) }
