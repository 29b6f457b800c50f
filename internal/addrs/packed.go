package addrs

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/provider/names"
)

// packed is an endpoint's name as words, as tables hold it: family (bits 0
// to 7), key (from bit 8), port (from bit 16) and scope (from bit 32) in the first,
// the address in the others.
type packed [3]uint64

// noName stands at an index that another process has set to what is no name. It names nothing, and the index is in
// use.
var noName packed

func pack(n names.Name) packed {
	return packed{
		uint64(n.Family) | uint64(n.Key)<<8 | uint64(n.Port)<<16 | uint64(n.Scope)<<32,
		binary.LittleEndian.Uint64(n.IP[:8]),
		binary.LittleEndian.Uint64(n.IP[8:]),
	}
}

func (p packed) unpack() names.Name {
	n := names.Name{
		Family: uint16(uint8(p[0])), Key: uint8(p[0] >> 8), Port: uint16(p[0] >> 16), Scope: uint32(p[0] >> 32),
	}
	binary.LittleEndian.PutUint64(n.IP[:8], p[1])
	binary.LittleEndian.PutUint64(n.IP[8:], p[2])
	return n
}

// valid reports whether p names an endpoint. Only what other processes wrote
// needs to be asked.
func (p packed) valid() bool {
	n := p.unpack()
	if n.Key != 0 {
		return false // address vectors with keys are not shared
	}
	switch n.Family {
	case names.AFInet:
		return n.Scope == 0 && p[1]>>32 == 0 && p[2] == 0 && !n.IsAny() && n.Port != 0
	case names.AFInet6:
		return !n.IsAny() && n.Port != 0
	case names.AFWord:
		return n.Port == 0 && n.Scope == 0 && p[2] == 0
	}
	return false
}
