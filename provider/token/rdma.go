package token

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/hw"
)

// RDMA is the body of a part PartRDMA: an RDMA device of the owner that reaches the region. What the address and the
// key consist of the device's transport says.
type RDMA struct {
	Address []byte // of the owner's interface on the device, which no other interface ever has
	Key     []byte // by which the device knows the region
}

// Limits of a token's parts PartRDMA.
const (
	MaxRails      = 4  // parts
	MaxRDMAField  = 64 // bytes of an address, or a key
	rdmaFieldHead = 4
)

// Append appends the body: address:2 | key:2, which are lengths, the address and the key.
func (r *RDMA) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.Address)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.Key)))
	return append(append(b, r.Address...), r.Key...)
}

// ParseRDMA reads a body, of which the fields are parts. What follows those that are known is passed over. False: it is
// too short, or has an empty or too long field.
func ParseRDMA(b []byte) (r RDMA, ok bool) {
	if len(b) < rdmaFieldHead {
		return r, false
	}
	address, key := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	b = b[rdmaFieldHead:]
	if address == 0 || key == 0 || address > MaxRDMAField || key > MaxRDMAField || len(b) < address+key {
		return r, false
	}
	return RDMA{b[:address:address], b[address : address+key : address+key]}, true
}

// AddRail adds a part PartRDMA, unless there is no room for it, or it is none that Parse takes.
func (t *Token) AddRail(r RDMA) {
	body := r.Append(nil)
	if t.size()+partHead+len(body) <= MaxLen && t.checkRDMA(body) == nil {
		t.Parts = append(t.Parts, Part{PartRDMA, body})
	}
}

// Rails returns the bodies of the parts PartRDMA, of which the token keeps the memory.
func (t *Token) Rails() (list []RDMA) {
	for _, p := range t.Parts {
		if p.Type != PartRDMA {
			continue
		}
		if r, ok := ParseRDMA(p.Body); ok {
			list = append(list, r)
		}
	}
	return list
}

// CheckRegion says in what the region that a device's key names differs from the token's, nil: in nothing.
func (t *Token) CheckRegion(r hw.Region) error {
	rights := uint16(0)
	if r.Access&hw.RemoteRead != 0 {
		rights |= Read
	}
	if r.Access&hw.RemoteWrite != 0 {
		rights |= Write
	}
	if r.Base != t.Base || uint64(r.Len) != t.Length || rights != t.Rights ||
		r.Access&^(hw.RemoteRead|hw.RemoteWrite) != 0 {
		return fmt.Errorf("a device's key for %d bytes at %#x with rights %#x, the token is for %d at %#x with %#x",
			r.Len, r.Base, r.Access, t.Length, t.Base, t.Rights)
	}
	return nil
}

// checkRDMA says what is wrong with another part PartRDMA of a token.
func (t *Token) checkRDMA(body []byte) error {
	r, ok := ParseRDMA(body)
	if !ok {
		return fmt.Errorf("%w: a device's address and key do not fit %d bytes", ErrInvalid, len(body))
	}
	known := t.Rails()
	if len(known) == MaxRails {
		return fmt.Errorf("%w: more than %d devices", ErrInvalid, MaxRails)
	}
	for _, k := range known {
		if bytes.Equal(k.Address, r.Address) {
			return fmt.Errorf("%w: two keys for the device at %x", ErrInvalid, r.Address)
		}
	}
	return nil
}
