package rkey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/wire"
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

// newDevice is a device of a keyDomain.
func newDevice() (Device, *keyDomain) {
	d := &keyDomain{}
	return Device{Domain: d, Cache: regcache.New(d, regcache.Config{})}, d
}

// TestExpose puts packed keys behind an RTS and takes them off it.
func TestExpose(t *testing.T) {
	dev, d := newDevice()
	if !dev.Exposes() || (Device{}).Exposes() || (Device{Domain: d}).Exposes() {
		t.Error("which devices expose")
	}
	buf := make([]byte, 3*4096)
	at := uintptr(unsafe.Pointer(&buf[0]))
	iov := []fi.IOVec{{Base: at, Len: 100}, {Base: at, Len: 0}, {Base: at + 5000, Len: 50}}
	r := wire.RTS{Request: 7, Length: 150, Count: 3, Flags: wire.FlagNoGet}
	for i, v := range iov {
		r.IOV[i] = hw.RemoteSegment{Addr: uint64(v.Base), Len: v.Len}
	}
	var keys [wire.IOVLimit * MaxKey]byte
	regions, n, ok := dev.Expose(iov, &r, keys[:])
	if !ok || n != 3*16 || r.Flags != wire.FlagKeyed|wire.FlagPacked || d.open != 2 {
		t.Fatalf("%d bytes of keys, flags %#x, %d regions", n, r.Flags, d.open)
	}
	if m := Covering(regions, at+5010, 40); m == nil || m.(*keyMemory).d != d {
		t.Errorf("memory of an element is registered as %v", m)
	}
	if m := Covering(regions, at+1<<20, 40); m != nil {
		t.Errorf("memory behind all elements is registered as %v", m)
	}
	var b [wire.RTSBytes]byte
	var got wire.RTS
	head := r.Put(b[:])
	if !got.Parse(head) || !dev.Take(&got, keys[:n], true) {
		t.Fatal("the RTS does not parse")
	}
	for _, i := range []int{0, 2} {
		k, s := got.Keys[i], got.IOV[i]
		if s.Addr != uint64(iov[i].Base) || k[0] > s.Addr || k[0]+k[1] < s.Addr+s.Len {
			t.Errorf("element %d: %+v with a key for %#x, %d bytes", i, s, k[0], k[1])
		}
	}
	for name, payload := range map[string][]byte{
		"short": keys[:n-1], "none": nil, "long": keys[:n+1],
		"a key of zeros": append(bytes.Clone(keys[:32]), make([]byte, 16)...),
	} {
		again := wire.RTS{}
		if again.Parse(head); dev.Take(&again, payload, true) {
			t.Errorf("%s: keys are taken", name)
		}
	}
	if again := got; (Device{}).Take(&again, keys[:n], false) {
		t.Error("keys are taken from a transport that has none")
	}
	again := got
	again.Flags &^= wire.FlagKeyed
	if dev.Take(&again, keys[:n], true) {
		t.Error("keys are taken that the flags do not name")
	}
	if Close(regions); d.open != 0 {
		t.Errorf("%d regions are left", d.open)
	}
}

// TestExposeWithoutRoom: what cannot be registered changes nothing.
func TestExposeWithoutRoom(t *testing.T) {
	dev, d := newDevice()
	d.full = true
	buf := make([]byte, 100)
	iov := []fi.IOVec{{Base: uintptr(unsafe.Pointer(&buf[0])), Len: 100}}
	r := wire.RTS{Length: 100, Count: 1, Flags: wire.FlagNoGet}
	if _, n, ok := dev.Expose(iov, &r, make([]byte, MaxKey)); ok || n != 0 || r.Flags != wire.FlagNoGet {
		t.Errorf("%d bytes of keys, flags %#x", n, r.Flags)
	}
	r.Length, d.full = 0, false
	if _, _, ok := dev.Expose(iov, &r, make([]byte, MaxKey)); ok || d.open != 0 {
		t.Error("a message without bytes is exposed")
	}
}

// TestExposeShort exposes an element without bytes between others, with keys in the place of addresses.
func TestExposeShort(t *testing.T) {
	d := udp.NewMemoryDomain()
	dev := Device{Domain: d}
	buf := make([]byte, 200)
	at := uintptr(unsafe.Pointer(&buf[0]))
	iov := []fi.IOVec{{Base: at, Len: 0}, {Base: at, Len: 100}, {Base: at, Len: 0}, {Base: at + 100, Len: 50}}
	r := wire.RTS{Request: 7, Length: 150, Count: 4}
	regions, n, ok := dev.Expose(iov, &r, make([]byte, wire.IOVLimit*MaxKey))
	if !ok || n != 0 || r.Flags != wire.FlagKeyed || len(regions) != 2 || d.Attr().MaxKey != shortKey {
		t.Fatalf("%d bytes of keys, flags %#x, %d regions", n, r.Flags, len(regions))
	}
	var keys [2]uint64
	for i, element := range []int{1, 3} {
		keys[i] = binary.LittleEndian.Uint64(regions[i].PackKey(nil))
		if r.IOV[element].Addr != keys[i] {
			t.Errorf("element %d: exposed as %#x, its key is %#x", element, r.IOV[element].Addr, keys[i])
		}
	}
	if !dev.Take(&r, nil, true) || r.Keys[3] != (hw.RemoteKey{keys[1]}) || r.IOV[3].Addr != 0 {
		t.Errorf("taken as %+v", r)
	}
	if dev.Take(&r, []byte{1}, true) {
		t.Error("short keys are taken with a payload")
	}
	Close(regions)
}

// TestTable keeps regions by request.
func TestTable(t *testing.T) {
	var x Table
	d := &keyDomain{}
	a, b := []hw.Memory{&keyMemory{d: d}}, []hw.Memory{&keyMemory{d: d}, &keyMemory{d: d}}
	x.Add(1, a)
	x.Add(2, b)
	if len(x.Of(2)) != 2 || len(x.Remove(1)) != 1 || len(x.Remove(1)) != 0 || !x.Any() {
		t.Error("regions by request")
	}
	if list := x.Clear(); len(list) != 2 || x.Any() || len(x.Of(2)) != 0 {
		t.Errorf("%d regions are taken out", len(list))
	}
}

// TestLocal: memory that a device knows for an operation, whole and in part, is given back once.
func TestLocal(t *testing.T) {
	cached, d := newDevice()
	b := make([]byte, 4*4096)
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	for what, dev := range map[string]Device{"a cache": cached, "none": {Domain: d}} {
		l, err := dev.Use(at+10, 5000, hw.LocalWrite)
		if err != nil || l.Memory() == nil || d.open != 1 {
			t.Fatalf("%s: %v, %d regions", what, err, d.open)
		}
		for _, c := range []struct {
			addr, n uint64
			has     bool
		}{
			{at + 10, 5000, true}, {at + 10, 5001, false}, {at + 9, 1, false}, {at + 5010, 0, true},
			{at + 5010, 1, false},
		} {
			if l.Has(c.addr, c.n) != c.has {
				t.Errorf("%s: %d bytes at %d", what, c.n, c.addr-at)
			}
		}
		part := l.Part(at+20, 30)
		if part.Memory() != l.Memory() || !part.Has(at+20, 30) || part.Has(at+10, 1) {
			t.Errorf("%s: a part is %+v", what, part)
		}
		dev.Leave(&part)
		if d.open != 1 || part.Memory() != nil {
			t.Errorf("%s: %d regions after a part", what, d.open)
		}
		dev.Leave(&l)
		dev.Leave(&l)
		if d.open != 0 || l.Has(at+10, 1) {
			t.Errorf("%s: %d regions are left", what, d.open)
		}
	}
	l, err := cached.Use(at, 8, 0)
	if err != nil {
		t.Fatal(err)
	}
	yielded := false
	cached.Keep(&l, func() {
		if !yielded {
			yielded = true
			cached.Leave(&l)
		}
	})
	d.full = true
	if _, err := cached.Use(at, 8, hw.LocalWrite); err == nil || !yielded || d.open != 0 {
		t.Errorf("without room: %v, memory that is kept is given up: %v, %d regions", err, yielded, d.open)
	}
	if l, err := cached.Use(at, 8, 0); err == nil || l.Memory() != nil {
		t.Errorf("without room: %v", err)
	}
	if _, err := (Device{Domain: d}).Use(1<<63, 8, 0); !errors.Is(err, hw.ErrNoDMABuf) {
		t.Errorf("memory of a device without a cache of it: %v", err)
	}
	if _, err := cached.Use(1<<63, 8, 0); !errors.Is(err, hw.ErrNoDMABuf) {
		t.Errorf("memory of a device: %v", err)
	}
}
