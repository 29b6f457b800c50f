// Package devaddr gives interfaces that are named by socket addresses each
// other's device addresses, over the UDP sockets that hold their names.
//
// # Protocol
//
// A question is a datagram to the peer's name; the answer comes back to where
// it came from. Questions are asked again until they are answered; losing or
// doubling a datagram does no harm. An answer must carry the number of its
// question, which is random, so that only a host that sees the question can
// answer it. A question is not shorter than its answer, so that an interface
// cannot be used to flood a third host. What is exchanged is no secret on the
// networks that devices trust: a device address lets its reader send packets
// to the service queue pair.
//
// An interface without a device answers too, so that the other side knows at once that
// another transport has to do. Several interfaces may share a name: a question says
// which of them is meant. The protocol may share its socket with another:
// the reader of the socket gives its datagrams to Take.
package devaddr

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/sock"
)

// A datagram is 'w' | 0 | 'x' | kind | number:8 | length of the address:2 | address, in
// packetBytes bytes, the rest zeros, and which of the name's interfaces is meant; only kindAnswer has an
// address. Byte 1 is
// where hw/udp, with which the socket may be shared, has the number of the
// receiver's socket.
const (
	packetBytes = 128
	headBytes   = 14
	kindAsk     = 1
	kindAnswer  = 2
	kindNone    = 3 // there is no device
	// MaxAddress is the longest device address in bytes.
	MaxAddress = packetBytes - headBytes - 1
	whichAt    = packetBytes - 1
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
	conn *net.UDPConn                      // nil: another protocol reads the socket
	send func(to netip.AddrPort, b []byte) // immutable once the first name is resolved
	done sync.WaitGroup

	mu    sync.Mutex       // connecting only
	own   map[uint8][]byte // device addresses, by the numbers of interfaces; none for one without a device
	known map[peer]*entry
}

// peer is a name, and which of its interfaces.
type peer struct {
	netip.AddrPort
	which uint8
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
	x.done.Go(func() { sock.Serve(u, packetBytes+1, x.Take) })
	return x, nil
}

func newExchange(own []byte) *Exchange {
	x := &Exchange{own: map[uint8][]byte{}, known: map[peer]*entry{}}
	x.Set(0, own)
	return x
}

// Set gives the interface with a number, of those that share the name, a device
// address of at most MaxAddress bytes, or takes it away.
func (x *Exchange) Set(which uint8, own []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(own) == 0 {
		delete(x.own, which)
	} else {
		x.own[which] = append([]byte(nil), own...)
	}
}

// Share answers questions that come to a socket that another protocol reads, which
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
// or sockaddr_in6, and a number after it in four bytes unless it is 0. While it is
// not known it asks, at most every so often, and returns hw.ErrUnreachable. Errors:
// hw.ErrNoPath when the peer has no device, hw.ErrInvalid.
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
		b := packet(kindAsk, number, nil, to.which)
		x.send(to.AddrPort, b[:])
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

// Take takes in a datagram that came from somewhere and returns what is to be
// sent back, nil for nothing. It keeps nothing of b and sends nothing itself.
func (x *Exchange) Take(from netip.AddrPort, b []byte) []byte {
	kind, number, address, which, ok := parsePacket(b)
	switch {
	case !ok:
	case kind == kindAsk:
		a := x.answer(number, which)
		return a[:]
	default:
		x.learn(peer{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), which}, number, address)
	}
	return nil
}

// answer answers question number for an interface.
func (x *Exchange) answer(number uint64, which uint8) [packetBytes]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	if own := x.own[which]; own != nil {
		return packet(kindAnswer, number, own, which)
	}
	return packet(kindNone, number, nil, which)
}

// learn takes an answer. An interface with several addresses may answer from
// another than the one asked: the number says which question it was.
func (x *Exchange) learn(from peer, number uint64, address []byte) {
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

func packet(kind byte, number uint64, address []byte, which uint8) (b [packetBytes]byte) {
	b[0], b[2], b[3] = 'w', 'x', kind
	binary.LittleEndian.PutUint64(b[4:], number)
	binary.LittleEndian.PutUint16(b[12:], uint16(len(address)))
	copy(b[headBytes:whichAt], address)
	b[whichAt] = which
	return b
}

// parsePacket reads a datagram. The address is part of b.
func parsePacket(b []byte) (kind byte, number uint64, address []byte, which uint8, ok bool) {
	if len(b) != packetBytes || b[0] != 'w' || b[1] != 0 || b[2] != 'x' {
		return 0, 0, nil, 0, false
	}
	kind, number = b[3], binary.LittleEndian.Uint64(b[4:])
	n := int(binary.LittleEndian.Uint16(b[12:]))
	if kind < kindAsk || kind > kindNone || (kind == kindAnswer) != (n != 0) || n > MaxAddress {
		return 0, 0, nil, 0, false
	}
	return kind, number, b[headBytes : headBytes+n], b[whichAt], true
}

// parseName reads a sockaddr_in or sockaddr_in6, and the number of an interface after
// it. Errors: hw.ErrInvalid.
func parseName(b []byte) (peer, error) {
	a, err := sock.Parse(b)
	if err != nil || !a.Usable() {
		return peer{}, fmt.Errorf("exchange: name of %d bytes is no socket address of a peer: %w", len(b),
			hw.ErrInvalid)
	}
	p := peer{AddrPort: a.AddrPort()}
	if rest := b[sock.Size(b):]; len(rest) >= 4 {
		number := binary.LittleEndian.Uint32(rest)
		if number > math.MaxUint8 {
			return peer{}, fmt.Errorf("exchange: interface %d of %s: %w", number, p, hw.ErrInvalid)
		}
		p.which = uint8(number)
	}
	return p, nil
}
