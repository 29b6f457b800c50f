package rkey

import (
	"encoding/binary"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Where a transport reads memory that the peer has registered, a message that goes as a rendezvous is exposed: each
// element of its vector is a region, until the receiver has acknowledged the message. Two kinds of keys go with the
// RTS:
//
//   - Short ones, of 8 bytes, take the place of the elements' addresses, which mean nothing to another host. Each
//     element is a region of its own, whose addresses begin at 0.
//   - Longer ones are the payload of the RTS (wire.FlagPacked), one after the other. Elements keep their addresses.
//     Such regions come from a cache of registrations and may be larger than the element.

// shortKey is the size of the keys that take the place of addresses.
const shortKey = 8

// MaxKey is the size of the longest key that goes with an RTS.
const MaxKey = 32

// Device is what registers memory for a transport.
type Device struct {
	Domain hw.MemoryDomain // nil: none
	Cache  *regcache.Cache // registrations of Domain, nil: they cost nothing
}

// Exposes reports whether the keys of its regions can go with an RTS.
func (d Device) Exposes() bool {
	if d.Domain == nil {
		return false
	}
	a := d.Domain.Attr()
	return d.Cache != nil && a.MaxKey <= MaxKey || a.MaxKey == shortKey && a.Caps&hw.MDLocal == 0
}

// packed reports whether its keys are a payload of the RTS.
func (d Device) packed() bool { return d.Domain.Attr().MaxKey != shortKey }

// Register makes a region of n bytes of memory of this process, which is taken back by its Close. Errors as of
// hw.MemoryDomain.
func (d Device) Register(addr uint64, n int, access hw.Access) (hw.Memory, error) {
	at := *(*unsafe.Pointer)(unsafe.Pointer(&addr)) // memory that the caller names by its address
	if d.Cache == nil {
		return d.Domain.Register(hw.Region{Addr: at, Len: n, Access: access})
	}
	e, err := d.Cache.Get(at, n, access)
	if err != nil {
		return nil, err
	}
	return &borrowed{e.Memory(), d.Cache, e}, nil
}

// borrowed is a region from a cache.
type borrowed struct {
	hw.Memory
	cache *regcache.Cache
	entry *regcache.Entry
}

// Close gives it back.
func (b *borrowed) Close() error {
	b.cache.Put(b.entry)
	return nil
}

// Covering is the registration, as the transport knows it, of n bytes of memory at addr among regions of
// [Device.Register]; nil: none.
func Covering(regions []hw.Memory, addr uintptr, n uint64) hw.Memory {
	for _, m := range regions {
		r := m.Region()
		if first := uintptr(r.Addr); addr >= first && addr+uintptr(n) <= first+uintptr(r.Len) {
			if b, ok := m.(*borrowed); ok {
				return b.Memory
			}
			return m
		}
	}
	return nil
}

// Close takes regions back.
func Close(regions []hw.Memory) {
	for _, m := range regions {
		_ = m.Close()
	}
}

// Expose registers what a message sends and puts the keys into its RTS, or into keys, of which n bytes are used. keys
// has room for MaxKey bytes an element. False: nothing is registered, and the payload goes in fragments.
func (d Device) Expose(iov []fi.IOVec, r *wire.RTS, keys []byte) (regions []hw.Memory, n int, ok bool) {
	if r.Length == 0 {
		return nil, 0, false
	}
	regions = make([]hw.Memory, 0, r.Count)
	var short [wire.IOVLimit]uint64
	packed := keys[:0]
	for i, v := range iov {
		if v.Len == 0 {
			if d.packed() {
				packed = append(packed, make([]byte, d.Domain.Attr().MaxKey)...)
			}
			continue
		}
		m, err := d.Register(uint64(v.Base), int(v.Len), hw.RemoteRead)
		if err != nil {
			log.Infof(log.EPData, "a message of %d bytes goes in fragments: %v", r.Length, err)
			Close(regions)
			return nil, 0, false
		}
		regions = append(regions, m)
		packed = m.PackKey(packed)
		if !d.packed() {
			short[i] = binary.LittleEndian.Uint64(packed)
			packed = packed[:0]
		}
	}
	r.Flags = r.Flags&^wire.FlagNoGet | wire.FlagKeyed
	if d.packed() {
		r.Flags |= wire.FlagPacked
		return regions, len(packed), true
	}
	for i := range short[:r.Count] {
		r.IOV[i].Addr = short[i]
	}
	return regions, 0, true
}

// Take reads the keys of an RTS that has come with a payload; exposes: its sender's memory is read over the device's
// transport. False: they do not parse.
func (d Device) Take(m *wire.RTS, payload []byte, exposes bool) bool {
	if m.Flags&wire.FlagKeyed == 0 {
		return len(payload) == 0 && m.Flags&wire.FlagPacked == 0
	}
	if m.Flags&wire.FlagPacked == 0 {
		for i := range m.IOV[:m.Count] {
			m.Keys[i] = hw.RemoteKey{m.IOV[i].Addr}
			m.IOV[i].Addr = 0
		}
		return len(payload) == 0
	}
	if !exposes || !d.packed() {
		return false
	}
	n := d.Domain.Attr().MaxKey
	if len(payload) != n*int(m.Count) {
		return false
	}
	for i := range m.IOV[:m.Count] {
		if m.IOV[i].Len == 0 {
			continue
		}
		var err error
		if m.Keys[i], err = d.Domain.UnpackKey(payload[n*i : n*(i+1)]); err != nil {
			return false
		}
	}
	return true
}
