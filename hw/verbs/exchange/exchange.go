// Package exchange tells interfaces that are named by socket addresses each
// other's device addresses, over the UDP sockets that hold their names.
//
// # Protocol
//
// A question is a datagram to the peer's name; the answer comes back to where
// it came from. Questions are asked again until they are answered; losing or
// doubling a datagram does no harm. An answer must carry the number of its
// question, which is random, so that nobody who cannot see the question can
// answer it. A question is not shorter than its answer, so that an interface
// cannot be used to flood somebody else. What is exchanged is no secret on the
// networks that devices trust: a device address lets its reader send packets
// to the service queue pair.
//
// An interface without a device answers too, so that who asks knows at once that
// another transport has to do. The protocol may share its socket with another:
// whoever reads the socket gives its datagrams to Take.
package exchange

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/sock"
)

// A datagram is 'w' | 0 | 'x' | kind | number:8 | length of the address:2 | address, in
// packetBytes bytes, the rest zeros; only kindTell has an address. Byte 1 is
// where hw/udp, with which the socket may be shared, has the number of the
// receiver's socket.
const (
	packetBytes = 128
	headBytes   = 14
	kindAsk     = 1
	kindTell    = 2
	kindNone    = 3 // there is no device
	// MaxAddress is the longest device address in bytes.
	MaxAddress = packetBytes - headBytes
)

// Pauses between two questions.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// noneAge is how long the word of a peer that it has no device counts.
const noneAge = time.Second

// Exchange answers for one interface, and asks for it. Its methods may be
// called from any thread.
type Exchange struct {
	conn *net.UDPConn                      // nil: somebody else reads the socket
	send func(to netip.AddrPort, b []byte) // immutable once the first name is resolved
	own  []byte                            // device address, empty: none; immutable
	done sync.WaitGroup

	mu    sync.Mutex // connecting only
	known map[netip.AddrPort]*entry
}

// entry is what is known of a peer.
type entry struct {
	number  uint64 // of the question under way
	address []byte // nil: no answer yet
	none    bool   // the peer has no device; holds until next
	next    time.Time
	pause   time.Duration
}

// Open answers questions that come to socket fd, of which it keeps a
// duplicate, with the device address own, at most MaxAddress bytes.
func Open(fd int, own []byte) (*Exchange, error) {
	if len(own) == 0 || len(own) > MaxAddress {
		return nil, fmt.Errorf("exchange: device address of %d bytes: %w", len(own), hw.ErrInvalid)
	}
	u, err := sock.Conn(fd)
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	x := newExchange(own)
	x.conn, x.send = u, func(to netip.AddrPort, b []byte) { _, _ = u.WriteToUDPAddrPort(b, to) }
	x.done.Go(x.serve)
	return x, nil
}

func newExchange(own []byte) *Exchange {
	return &Exchange{own: append([]byte(nil), own...), known: map[netip.AddrPort]*entry{}}
}

// Share answers questions that come to a socket which somebody else reads, who
// calls Take. own may be empty: then the answer is that there is no device.
// [Exchange.Over] comes before the first Resolve.
func Share(own []byte) (*Exchange, error) {
	if len(own) > MaxAddress {
		return nil, fmt.Errorf("exchange: device address of %d bytes: %w", len(own), hw.ErrInvalid)
	}
	return newExchange(own), nil
}

// Over has questions sent by f, which must not call back and may lose them.
func (x *Exchange) Over(f func(to netip.AddrPort, b []byte)) { x.send = f }

// Close stops answering.
func (x *Exchange) Close() error {
	if x.conn == nil {
		return nil
	}
	err := x.conn.Close()
	x.done.Wait()
	return err
}

// Resolve returns the device address of the interface named by a sockaddr_in
// or sockaddr_in6. While it is not known it asks, at most every so often, and
// returns hw.ErrUnreachable. Errors: hw.ErrNoPath when the peer has no device,
// hw.ErrInvalid.
func (x *Exchange) Resolve(name []byte) ([]byte, error) {
	to, err := parseName(name)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	e := x.known[to]
	if e == nil {
		e = &entry{number: rand.Uint64(), pause: firstPause}
		x.known[to] = e
	}
	address, ask := e.address, false
	if now := time.Now(); address == nil && !now.Before(e.next) {
		ask = true
		if e.none {
			*e = entry{number: rand.Uint64(), pause: firstPause}
		}
		e.next = now.Add(e.pause)
		e.pause = min(2*e.pause, lastPause)
	}
	number, none := e.number, e.none
	x.mu.Unlock()
	if address != nil {
		return address, nil
	}
	if none {
		return nil, fmt.Errorf("exchange: %s has no device: %w", to, hw.ErrNoPath)
	}
	if ask { // one that cannot be sent counts as lost
		b := packet(kindAsk, number, nil)
		x.send(to, b[:])
	}
	return nil, fmt.Errorf("exchange: %s has not answered: %w", to, hw.ErrUnreachable)
}

// Forget drops what is known of a name: its interface is gone, and another may
// take the name.
func (x *Exchange) Forget(name []byte) {
	if to, err := parseName(name); err == nil {
		x.mu.Lock()
		delete(x.known, to)
		x.mu.Unlock()
	}
}

// serve answers questions and takes answers.
func (x *Exchange) serve() {
	var b [packetBytes + 1]byte
	for {
		n, from, err := x.conn.ReadFromUDPAddrPort(b[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an earlier answer met a closed port
		}
		if a := x.Take(from, b[:n]); a != nil {
			x.send(from, a)
		}
	}
}

// Take takes in a datagram that came from somewhere and returns what is to be
// sent back, nil for nothing. It keeps nothing of b and sends nothing itself.
func (x *Exchange) Take(from netip.AddrPort, b []byte) []byte {
	kind, number, address, ok := parsePacket(b)
	switch {
	case !ok:
	case kind == kindAsk && len(x.own) == 0:
		a := packet(kindNone, number, nil)
		return a[:]
	case kind == kindAsk:
		a := packet(kindTell, number, x.own)
		return a[:]
	default:
		x.learn(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), number, address)
	}
	return nil
}

// learn takes an answer. An interface with several addresses may answer from
// another than the one asked: the number says which question it was.
func (x *Exchange) learn(from netip.AddrPort, number uint64, address []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.known[from]
	if e == nil || e.number != number {
		for _, other := range x.known {
			if other.number == number {
				e = other
			}
		}
	}
	if e == nil || e.number != number || e.address != nil {
		return
	}
	if len(address) == 0 {
		e.none, e.next = true, time.Now().Add(noneAge)
		return
	}
	e.address = append([]byte(nil), address...)
}

func packet(kind byte, number uint64, address []byte) (b [packetBytes]byte) {
	b[0], b[2], b[3] = 'w', 'x', kind
	binary.LittleEndian.PutUint64(b[4:], number)
	binary.LittleEndian.PutUint16(b[12:], uint16(len(address)))
	copy(b[headBytes:], address)
	return b
}

// parsePacket reads a datagram. The address is part of b.
func parsePacket(b []byte) (kind byte, number uint64, address []byte, ok bool) {
	if len(b) != packetBytes || b[0] != 'w' || b[1] != 0 || b[2] != 'x' {
		return 0, 0, nil, false
	}
	kind, number = b[3], binary.LittleEndian.Uint64(b[4:])
	n := int(binary.LittleEndian.Uint16(b[12:]))
	if kind < kindAsk || kind > kindNone || (kind == kindTell) != (n != 0) || n > MaxAddress {
		return 0, 0, nil, false
	}
	return kind, number, b[headBytes : headBytes+n], true
}

// parseName reads a sockaddr_in or sockaddr_in6. Errors: hw.ErrInvalid.
func parseName(b []byte) (netip.AddrPort, error) {
	if len(b) >= unix.SizeofSockaddrInet4 {
		port := binary.BigEndian.Uint16(b[2:])
		switch family := binary.NativeEndian.Uint16(b); {
		case family == unix.AF_INET:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), nil
		case family == unix.AF_INET6 && len(b) >= unix.SizeofSockaddrInet6:
			a := netip.AddrFrom16([16]byte(b[8:24]))
			if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 {
				a = a.WithZone(fmt.Sprint(scope))
			}
			return netip.AddrPortFrom(a.Unmap(), port), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("exchange: name of %d bytes is no socket address: %w", len(b), hw.ErrInvalid)
}
