package cxi

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Indices of a PID, of those that libfabric's own provider leaves free.
const (
	indexMessages = 8
	indexPresence = 9
	indexMemory   = 10
)

// address is where an interface is:
//
//	version | PID bits | longest message / 64:2 | NIC:4 | PID:2 | VNI:2 | number:8
type address struct {
	nid, pid uint32
	pidBits  uint8
	vni      uint16
	longest  uint32 // bytes of one message that it takes, a multiple of 64
	nonce    uint64 // another for each interface
}

const (
	addressBytes = 20
	// addressVersion changes with the address, and with what messages say.
	addressVersion = 2
)

func (a *address) appendTo(b []byte) []byte {
	b = append(b, addressVersion, a.pidBits)
	b = binary.LittleEndian.AppendUint16(b, uint16(a.longest/64))
	b = binary.LittleEndian.AppendUint32(b, a.nid)
	b = binary.LittleEndian.AppendUint16(b, uint16(a.pid))
	b = binary.LittleEndian.AppendUint16(b, a.vni)
	return binary.LittleEndian.AppendUint64(b, a.nonce)
}

// parseAddress reads an address. Errors wrap hw.ErrInvalid.
func parseAddress(b []byte) (address, error) {
	if len(b) != addressBytes {
		return address{}, fmt.Errorf("cxi: address of %d bytes: %w", len(b), hw.ErrInvalid)
	}
	if b[0] != addressVersion {
		return address{}, fmt.Errorf("cxi: address of version %d, not %d: %w", b[0], addressVersion, hw.ErrInvalid)
	}
	a := address{
		pidBits: b[1], longest: 64 * uint32(binary.LittleEndian.Uint16(b[2:])), nid: binary.LittleEndian.Uint32(b[4:]),
		pid: uint32(binary.LittleEndian.Uint16(b[8:])), vni: binary.LittleEndian.Uint16(b[10:]),
		nonce: binary.LittleEndian.Uint64(b[12:]),
	}
	if a.pidBits < 6 || a.pidBits > 9 || a.nid >= wire.LimitNidAny || a.pid >= 1<<a.pidBits ||
		a.longest < minBounceSize || a.nonce == 0 {
		return address{}, fmt.Errorf("cxi: address % x: %w", b, hw.ErrInvalid)
	}
	return a, nil
}

// String names the interface for people.
func (a *address) String() string { return fmt.Sprintf("NIC %#x PID %d VNI %d", a.nid, a.pid, a.vni) }

// at is one of its indices.
func (a *address) at(index uint32) nic.Address {
	return nic.Address{NID: a.nid, PID: a.pid, Index: index, PIDBits: uint32(a.pidBits)}
}

// id is how receivers see it.
func (a *address) id() uint32 { return nic.MatchID(a.nid, a.pid, uint32(a.pidBits)) }

// matchHigh is the upper half of the match bits of messages to it.
func (a *address) matchHigh() uint64 { return a.nonce >> 32 << 32 }
