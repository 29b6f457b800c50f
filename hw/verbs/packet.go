package verbs

import (
	"encoding/binary"
	"errors"
)

// packetType says what a service packet is for.
type packetType uint8

const (
	// packetHello has the sender's half of the connection for messages.
	packetHello packetType = 1 + iota
	// packetMemory asks for a passive half for the sender's one-sided operations.
	packetMemory
	// packetPassive answers it.
	packetPassive
	// packetWait says that the sender lives, but must make progress before it can answer.
	packetWait
	// packetBye says that the sender closes its interface.
	packetBye
	// packetRefuse says why the sender will not connect.
	packetRefuse
	// packetLost says that the sender has given up the connection that a hello of the receiver's goes on with.
	packetLost
)

// Flags of packets.
const (
	// flagWant asks for an answer: the sender does not know yet that the receiver has its half.
	flagWant = 1 << iota
	// flagClosed says that the sender's eager window is closed.
	flagClosed
	// flagFirst says that the sender's queue pair is the first of a new connection.
	flagFirst
	knownFlags = 1<<iota - 1
)

// packet is a service packet. Which fields count depends on its type.
type packet struct {
	kind  packetType
	flags uint8
	reads uint8  // reads and atomics that the sender takes at a time
	nonce uint64 // the receiver's
	from  address
	name  [maxNameBytes]byte // by which the sender is known
	nameN uint8
	epoch uint32 // of the sender's queue pair: later ones have higher numbers
	// got is the epoch of the receiver that the sender's queue pair is joined to, 0: none; or of the hello that
	// packetLost answers
	got   uint32
	qp    uint32
	psn   uint32
	index uint32 // of the receiver among the sender's peers: what the receiver puts into its messages
	seq   uint32 // last position received (hello), last position sent (bye)
	// address and key of a word that may be read (passive), or of the ring that the receiver may write into (hello), 0:
	// none
	reach uint64
	rkey  uint32
	code  uint32 // of packetRefuse: an errno value
	taken uint32 // messages taken from that ring so far
}

// packetBytes is the length of every service packet:
//
//	"wvp" | version | kind | flags | reads | nameN | nonce:8 | from:40 | name:32 |
//	epoch | got | qp | psn | index | seq | rkey | code | taken (4 each) | reach:8
const (
	packetBytes   = 132
	packetVersion = 6
)

var errPacket = errors.New("malformed service packet")

func (p *packet) appendTo(b []byte) []byte {
	b = append(b, 'w', 'v', 'p', packetVersion, byte(p.kind), p.flags, p.reads, p.nameN)
	b = binary.LittleEndian.AppendUint64(b, p.nonce)
	b = p.from.appendTo(b)
	b = append(b, p.name[:]...)
	for _, v := range []uint32{p.epoch, p.got, p.qp, p.psn, p.index, p.seq, p.rkey, p.code, p.taken} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, p.reach)
}

// parsePacket reads and checks a service packet that was sent to the interface
// with this nonce. What does not prove that its sender knows the nonce is
// refused before anything else is read.
func parsePacket(b []byte, nonce uint64) (p packet, err error) {
	if len(b) != packetBytes || b[0] != 'w' || b[1] != 'v' || b[2] != 'p' || b[3] != packetVersion {
		return p, errPacket
	}
	p.kind, p.flags, p.reads, p.nameN = packetType(b[4]), b[5], b[6], b[7]
	p.nonce = binary.LittleEndian.Uint64(b[8:])
	if p.nonce != nonce {
		return p, errPacket
	}
	if p.from, err = parseAddress(b[16:56]); err != nil {
		return p, errPacket
	}
	copy(p.name[:], b[56:88])
	for n, v := range []*uint32{&p.epoch, &p.got, &p.qp, &p.psn, &p.index, &p.seq, &p.rkey, &p.code, &p.taken} {
		*v = binary.LittleEndian.Uint32(b[88+4*n:])
	}
	p.reach = binary.LittleEndian.Uint64(b[124:])
	connects := p.kind == packetHello || p.kind == packetMemory || p.kind == packetPassive
	switch {
	case p.kind < packetHello || p.kind > packetLost, p.flags&^(knownFlags) != 0, p.nameN > maxNameBytes:
		return p, errPacket
	case connects && (p.qp == 0 || p.qp >= 1<<24 || p.psn >= 1<<24 || p.epoch == 0 || p.index >= maxPeers):
		return p, errPacket
	}
	return p, nil
}

// nameBytes is the name by which the sender is known, its device address if it has none.
func (p *packet) nameBytes() []byte {
	if p.nameN == 0 {
		return p.from.appendTo(nil)
	}
	return append([]byte(nil), p.name[:p.nameN]...)
}

// Immediate data of a write without bytes: the receiver's index of the sender
// and what it says.
const (
	immBits     = 8
	immIndexMax = 1 << (32 - immBits)
	immOpen     = 1 // the sender's eager window is open
	immClosed   = 2
)
