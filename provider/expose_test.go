package provider

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/regcache"
	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/provider/wire"
)

// keyDomain is a memory domain whose keys have 16 bytes: base and length.
type keyDomain struct {
	hw.MemoryDomain
	open int
	full bool
}

type keyMemory struct {
	d *keyDomain
	r hw.Region
}

func (d *keyDomain) Attr() hw.MDAttr { return hw.MDAttr{Caps: hw.MDLocal | hw.MDCost, MaxKey: 16} }

func (d *keyDomain) Register(r hw.Region) (hw.Memory, error) {
	if d.full {
		return nil, hw.ErrNoResource
	}
	d.open++
	return &keyMemory{d, r}, nil
}

func (d *keyDomain) UnpackKey(b []byte) (hw.RemoteKey, error) {
	if len(b) != 16 || binary.LittleEndian.Uint64(b) == 0 {
		return hw.RemoteKey{}, hw.ErrInvalid
	}
	return hw.RemoteKey{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, nil
}

func (m *keyMemory) Region() hw.Region { return m.r }

func (m *keyMemory) PackKey(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, m.r.Base)
	return binary.LittleEndian.AppendUint64(to, uint64(m.r.Len))
}

func (m *keyMemory) Close() error {
	m.d.open--
	return nil
}

// keyIface is an interface on a keyDomain that only has that.
type keyIface struct {
	hw.Iface
	d *keyDomain
}

func (i keyIface) Memory() hw.MemoryDomain { return i.d }

func keyPort() (*Endpoint, *port, *keyDomain) {
	d := &keyDomain{}
	p := &port{Iface: keyIface{d: d}, attr: hw.Attr{Caps: hw.CapGetZcopy}, number: 1, cache: regcache.New(d, regcache.Config{})}
	return &Endpoint{initiator: initiator{peering: peering{portSet: portSet{ports: []*port{{}, p}}}}}, p, d
}

// TestExposed announces a message with packed keys and reads the announcement.
func TestExposed(t *testing.T) {
	e, p, d := keyPort()
	const src = hw.Source(1 << sourcePortShift)
	buf := make([]byte, 3*4096)
	at := uintptr(unsafe.Pointer(&buf[0]))
	req := &txRequest{Count: 3}
	req.IOV = [wire.IOVLimit]fi.IOVec{{Base: at, Len: 100}, {Base: at, Len: 0}, {Base: at + 5000, Len: 50}}
	r := wire.RTS{Request: 7, Length: 150, Count: 3, Flags: wire.FlagNoGet}
	for i, v := range req.IOV[:3] {
		r.IOV[i] = hw.RemoteSegment{Addr: uint64(v.Base), Len: v.Len}
	}
	var keys [wire.IOVLimit * maxKey]byte
	n := e.expose(p, req, 7, &r, keys[:])
	if n != 3*16 || r.Flags != wire.FlagKeyed|wire.FlagPacked || req.Flags&txExposed == 0 || d.open != 2 {
		t.Fatalf("%d bytes of keys, flags %#x, %d regions", n, r.Flags, d.open)
	}
	var b [wire.RTSBytes]byte
	var got wire.RTS
	head := r.Put(b[:])
	if !got.Parse(head) || !e.takeKeys(src, &got, keys[:n]) {
		t.Fatal("the announcement does not parse")
	}
	for _, i := range []int{0, 2} {
		k, s := got.Keys[i], got.IOV[i]
		if s.Addr != uint64(req.IOV[i].Base) || k[0] > s.Addr || k[0]+k[1] < s.Addr+s.Len {
			t.Errorf("element %d: %+v with a key for %#x, %d bytes", i, s, k[0], k[1])
		}
	}
	for name, payload := range map[string][]byte{
		"short": keys[:n-1], "none": nil, "long": keys[:n+1],
		"a key of zeros": append(bytes.Clone(keys[:32]), make([]byte, 16)...),
	} {
		again := wire.RTS{}
		if again.Parse(head); e.takeKeys(src, &again, payload) {
			t.Errorf("%s: keys are taken", name)
		}
	}
	if again := got; e.takeKeys(0, &again, keys[:n]) {
		t.Error("keys are taken from a port that has none")
	}
	e.conceal(req, 7)
	if d.open != 0 || e.exposed.any() {
		t.Errorf("%d regions are left", d.open)
	}
}

// TestExposedWithoutRoom: what cannot be registered is announced as before.
func TestExposedWithoutRoom(t *testing.T) {
	e, p, d := keyPort()
	d.full = true
	buf := make([]byte, 100)
	req := &txRequest{Count: 1, IOV: [wire.IOVLimit]fi.IOVec{{Base: uintptr(unsafe.Pointer(&buf[0])), Len: 100}}}
	r := wire.RTS{Length: 100, Count: 1, Flags: wire.FlagNoGet}
	if n := e.expose(p, req, 1, &r, make([]byte, maxKey)); n != 0 || r.Flags != wire.FlagNoGet ||
		req.Flags&txExposed != 0 {
		t.Errorf("%d bytes of keys, flags %#x", n, r.Flags)
	}
}

// memoryIface is an interface that only has a memory domain.
type memoryIface struct {
	hw.Iface
	memory hw.MemoryDomain
}

func (i memoryIface) Memory() hw.MemoryDomain { return i.memory }

// TestExposedShort announces an element without bytes between others, with keys
// in the place of addresses.
func TestExposedShort(t *testing.T) {
	d := udp.NewMemoryDomain()
	p := &port{Iface: memoryIface{memory: d}, attr: hw.Attr{Caps: hw.CapGetZcopy}, number: 1}
	e := &Endpoint{initiator: initiator{peering: peering{portSet: portSet{ports: []*port{{}, p}}}}}
	buf := make([]byte, 200)
	at := uintptr(unsafe.Pointer(&buf[0]))
	req := &txRequest{Count: 4}
	req.IOV = [wire.IOVLimit]fi.IOVec{{Base: at, Len: 0}, {Base: at, Len: 100}, {Base: at, Len: 0},
		{Base: at + 100, Len: 50}}
	r := wire.RTS{Request: 7, Length: 150, Count: 4}
	if n := e.expose(p, req, 7, &r, make([]byte, wire.IOVLimit*maxKey)); n != 0 || r.Flags != wire.FlagKeyed {
		t.Fatalf("%d bytes of keys, flags %#x", n, r.Flags)
	}
	regions := e.exposed.remove(7)
	if len(regions) != 2 || d.Attr().MaxKey != keyBytes {
		t.Fatalf("%d regions", len(regions))
	}
	for i, element := range []int{1, 3} {
		if key := binary.LittleEndian.Uint64(regions[i].PackKey(nil)); r.IOV[element].Addr != key {
			t.Errorf("element %d: announced as %#x, its key is %#x", element, r.IOV[element].Addr, key)
		}
	}
	closeAll(regions)
}
