package verbs

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/weft-fabric/weft/hw"
)

// GIDType is the encapsulation that a GID of an Ethernet port stands for.
type GIDType uint8

// Kinds of GIDs.
const (
	GIDInfiniBand GIDType = iota // InfiniBand, or RoCE v1
	GIDRoCEv2                    // UDP/IP
)

// address is an interface's device address: where its service queue pair is
// and the nonce that packets of peers have to carry.
type address struct {
	ethernet bool
	kind     GIDType
	mtu      uint8 // 1 to 5: 256 to 4096 bytes
	lid      uint16
	gid      [16]byte
	qp       uint32 // 24 bits
	qkey     uint32
	nonce    uint64 // random; another for each interface
}

// addressBytes is the length of an encoded device address:
//
//	"wv" | version | flags | kind | mtu | lid:2 | gid:16 | qp:4 | qkey:4 | nonce:8
//
// in little-endian order, but for the GID, which is in the network's.
const addressBytes = 40

const (
	addressVersion = 1
	flagEthernet   = 1
)

func (a *address) appendTo(b []byte) []byte {
	var flags byte
	if a.ethernet {
		flags |= flagEthernet
	}
	b = append(b, 'w', 'v', addressVersion, flags, byte(a.kind), a.mtu)
	b = binary.LittleEndian.AppendUint16(b, a.lid)
	b = append(b, a.gid[:]...)
	b = binary.LittleEndian.AppendUint32(b, a.qp)
	b = binary.LittleEndian.AppendUint32(b, a.qkey)
	return binary.LittleEndian.AppendUint64(b, a.nonce)
}

// parseAddress reads a device address. Errors wrap hw.ErrInvalid.
func parseAddress(b []byte) (address, error) {
	bad := func(what string) (address, error) {
		return address{}, fmt.Errorf("verbs: address %x: %s: %w", b[:min(len(b), addressBytes)], what, hw.ErrInvalid)
	}
	if len(b) != addressBytes {
		return bad(fmt.Sprintf("%d bytes, not %d", len(b), addressBytes))
	}
	a := address{
		ethernet: b[3]&flagEthernet != 0, kind: GIDType(b[4]), mtu: b[5],
		lid: binary.LittleEndian.Uint16(b[6:]), gid: [16]byte(b[8:24]),
		qp: binary.LittleEndian.Uint32(b[24:]), qkey: binary.LittleEndian.Uint32(b[28:]),
		nonce: binary.LittleEndian.Uint64(b[32:]),
	}
	switch {
	case b[0] != 'w' || b[1] != 'v' || b[2] != addressVersion:
		return bad("not of this version")
	case b[3]&^flagEthernet != 0:
		return bad("unknown flags")
	case a.kind > GIDRoCEv2:
		return bad("unknown kind of GID")
	case a.mtu < 1 || a.mtu > 5:
		return bad("MTU")
	case a.qp == 0 || a.qp >= 1<<24:
		return bad("queue pair number")
	case a.nonce == 0:
		return bad("no nonce")
	case a.ethernet && a.gid == [16]byte{}:
		return bad("no GID")
	}
	return a, nil
}

// String is where the interface is, for people.
func (a *address) String() string {
	if !a.ethernet {
		return fmt.Sprintf("lid %d qp %d", a.lid, a.qp)
	}
	return fmt.Sprintf("%s qp %d", netip.AddrFrom16(a.gid).Unmap(), a.qp)
}
