package proto

import "encoding/binary"

// NameBytes is the length of an endpoint's name (FI_ADDR_CXI).
const NameBytes = 8

// Name is where an endpoint is: a PID of a NIC, in a virtual network. VNI 0 is that of the endpoint which uses the
// name: so libfabric's provider names endpoints, but where an address vector spans virtual networks.
type Name struct {
	NID uint32 // 20 bits
	PID uint32 // 9 bits
	VNI uint16
}

// Fields of a name, as a word in the order of the machine:
//
//	PID:9 | NIC:20 | 0:3 | VNI:16 | 0:16
const (
	nidShift = 9
	vniShift = 32
	pidMask  = 1<<9 - 1
	nidMask  = 1<<20 - 1
)

// anyNID in a match id admits all NICs; none has the number.
const anyNID = nidMask

// Word is the name as a word.
func (n Name) Word() uint64 {
	return uint64(n.PID)&pidMask | uint64(n.NID)&nidMask<<nidShift | uint64(n.VNI)<<vniShift
}

// NameOf is the name that a word holds. Bits that have no meaning are passed by. False: it names no endpoint of a
// fabric with PIDs of pidBits.
func NameOf(word uint64, pidBits uint32) (Name, bool) {
	n := Name{NID: uint32(word >> nidShift & nidMask), PID: uint32(word & pidMask), VNI: uint16(word >> vniShift)}
	return n, n.NID != anyNID && n.PID>>pidBits == 0
}

// AppendTo appends the name's bytes.
func (n Name) AppendTo(b []byte) []byte { return binary.NativeEndian.AppendUint64(b, n.Word()) }

// ParseName reads a name. False: as for NameOf, or b has another length.
func ParseName(b []byte, pidBits uint32) (Name, bool) {
	if len(b) != NameBytes {
		return Name{}, false
	}
	return NameOf(binary.NativeEndian.Uint64(b), pidBits)
}

// FromMatchID is the sender that a match id of a virtual network names: PID in the upper bits, NIC below.
func FromMatchID(id, pidBits uint32, vni uint16) Name {
	return Name{NID: id & nidMask, PID: id >> (32 - pidBits), VNI: vni}
}

// FromFabricAddress is the same of a fabric address, as rendezvous carry it: NIC in the upper 20 bits.
func FromFabricAddress(a, pidBits uint32, vni uint16) Name {
	return Name{NID: a >> 12, PID: a & (1<<pidBits - 1), VNI: vni}
}
