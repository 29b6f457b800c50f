package cxi

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Memory is a registered region. It implements hw.Memory.
type Memory struct {
	d      *MemoryDomain
	region hw.Region
	addr   uint64
	md     *libcxi.MD
	key    uint64 // match bits under which peers reach it, 0: they do not
	id     uint16 // of its list entry
	owned  pinned // from Alloc

	mu     sync.Mutex // Close
	closed bool
}

const (
	allAccess    = hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic
	remoteAccess = allAccess &^ hw.LocalWrite
)

// mapFlags turns rights into the NIC's.
func mapFlags(a hw.Access) uint32 {
	if a&(hw.LocalWrite|hw.RemoteWrite|hw.RemoteAtomic) != 0 {
		return libcxi.MapRead | libcxi.MapWrite
	}
	return libcxi.MapRead
}

// Register makes memory known to the NIC.
func (d *MemoryDomain) Register(r hw.Region) (hw.Memory, error) {
	addr, n := uint64(uintptr(r.Addr)), uint64(r.Len)
	if r.Len < 1 || addr == 0 || addr+n < addr || r.Base+n < r.Base || r.Access&^allAccess != 0 {
		return nil, fmt.Errorf("cxi: register %d bytes at %#x with rights %#x: %w", r.Len, addr, r.Access,
			hw.ErrInvalid)
	}
	md, err := d.lni.Map(addr, n, mapFlags(r.Access)|libcxi.MapPin)
	if err != nil {
		return nil, registered(err, n)
	}
	m := &Memory{d: d, region: r, addr: addr, md: md}
	if err := m.expose(); err != nil {
		return nil, errors.Join(err, md.Close())
	}
	return m, nil
}

// Alloc allocates and registers zeroed memory.
func (d *MemoryDomain) Alloc(r hw.Region) (hw.Memory, error) {
	if r.Len < 1 || r.Access&^allAccess != 0 {
		return nil, fmt.Errorf("cxi: allocate %d bytes with rights %#x: %w", r.Len, r.Access, hw.ErrInvalid)
	}
	p, err := d.newPinned(r.Len, mapFlags(r.Access))
	if err != nil {
		return nil, err
	}
	r.Addr = addressPointer(p.memory)
	m := &Memory{d: d, region: r, addr: p.first, md: p.md, owned: p}
	if err := m.expose(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return m, nil
}

// expose lets peers reach the memory, as far as its rights say.
func (m *Memory) expose() error {
	if m.region.Access&remoteAccess == 0 {
		return nil
	}
	return m.d.exposed.add(m)
}

// registered maps the errors of a registration to package hw's.
func registered(err error, n uint64) error {
	kind := reason(err)
	if is(err, unix.EINVAL, unix.EFAULT) {
		kind = hw.ErrInvalid
	}
	return fmt.Errorf("cxi: register %d bytes: %w: %w", n, err, kind)
}

// Region is what was registered.
func (m *Memory) Region() hw.Region { return m.region }

// Place says where the NIC has the region.
func (m *Memory) Place() hw.Placed {
	return hw.Placed{Addr: m.addr, At: m.md.IOVA(m.addr), Space: m.md.LAC(), Valid: true}
}

// local is a piece of the region as the NIC sees it.
func (m *Memory) local(addr uint64, n int) nic.Memory {
	return nic.Memory{IOVA: m.md.IOVA(addr), LAC: m.md.LAC(), Len: uint32(n)}
}

// Close ends the registration.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if m.key != 0 {
		if err := m.d.exposed.remove(m); err != nil {
			return err
		}
		m.key = 0
	}
	m.closed = true
	if m.owned.md != nil {
		return m.owned.close()
	}
	if err := m.md.Close(); err != nil {
		return fmt.Errorf("cxi: %w", err)
	}
	return nil
}

// keyBytes is the length of a packed key:
//
//	version | rights | PID:2 | NIC:4 | match bits:8 | base:8 | length:8
const (
	keyBytes   = 32
	keyVersion = 1
)

// PackKey appends the remote key.
func (m *Memory) PackKey(to []byte) []byte {
	to = append(to, keyVersion, byte(m.region.Access))
	to = binary.LittleEndian.AppendUint16(to, uint16(m.d.exposed.pid()))
	to = binary.LittleEndian.AppendUint32(to, m.d.dev.NID)
	to = binary.LittleEndian.AppendUint64(to, m.key)
	to = binary.LittleEndian.AppendUint64(to, m.region.Base)
	return binary.LittleEndian.AppendUint64(to, uint64(m.region.Len))
}

// Keep has the key name this region alone: its match bits are random.
func (m *Memory) Keep() bool { return m.region.Access&remoteAccess != 0 }

// KeyRegion is what a key says of its region.
func (d *MemoryDomain) KeyRegion(k hw.RemoteKey) hw.Region {
	return hw.Region{Base: k[2], Len: int(k[3]), Access: hw.Access(k[0]>>48) & allAccess}
}

// keyMark is set in the first word of every key, whose other bits are rights, PID and NIC.
const keyMark = 1 << 63

// UnpackKey reads a packed key: the words of a hw.RemoteKey are where it is, the match bits, the base and the length.
func (d *MemoryDomain) UnpackKey(b []byte) (k hw.RemoteKey, err error) {
	if len(b) != keyBytes || b[0] != keyVersion || hw.Access(b[1])&^allAccess != 0 {
		return k, fmt.Errorf("cxi: remote key of %d bytes: %w", len(b), hw.ErrInvalid)
	}
	nid := binary.LittleEndian.Uint32(b[4:])
	pid := binary.LittleEndian.Uint16(b[2:])
	k[0] = keyMark | uint64(b[1])<<48 | uint64(pid)<<32 | uint64(nid)
	k[1] = binary.LittleEndian.Uint64(b[8:])
	k[2] = binary.LittleEndian.Uint64(b[16:])
	k[3] = binary.LittleEndian.Uint64(b[24:])
	if k[3] == 0 || k[2]+k[3] < k[2] || nid > wire.LimitNidAny || uint32(pid) >= 1<<d.pidBits() {
		return hw.RemoteKey{}, fmt.Errorf("cxi: remote key % x: %w", b, hw.ErrInvalid)
	}
	return k, nil
}

// remote is where n bytes at addr, in the terms of the key's region, are: the receiver's address without its index, the
// match bits and the offset.
func remote(k hw.RemoteKey, addr, n uint64, need hw.Access) (nid, pid uint32, bits, off uint64, err error) {
	off = addr - k[2]
	if k[0]&keyMark == 0 || hw.Access(k[0]>>48&0xff)&need != need || addr < k[2] || off > k[3] || n > k[3]-off ||
		k[1] == 0 {
		return 0, 0, 0, 0, hw.ErrKey
	}
	return uint32(k[0]), uint32(k[0] >> 32 & 0xffff), k[1], off, nil
}

// exposure is where peers reach the regions of a domain: a PID with one list, made for the first region.
type exposure struct {
	d *MemoryDomain

	mu     sync.Mutex // control operations only
	domain *libcxi.Domain
	events eventQueue
	portal portal
	pte    *libcxi.PtlTE
	free   []uint16 // ids that no entry has, the one that rests longest first
	next   uint16   // ids below it have been used
}

// pid is the PID, 0 before the first region.
func (x *exposure) pid() uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.domain == nil {
		return 0
	}
	return x.domain.PID()
}

// open makes the list, if there is none. The caller has mu.
func (x *exposure) open() (err error) {
	if x.pte != nil {
		return nil
	}
	if x.domain, err = x.d.lni.NewDomain(x.d.vni, libcxi.AnyPID); err != nil {
		x.domain = nil
		return limit(err)
	}
	if err = x.events.open(x.d, 127, true, nil, 0); err == nil {
		if err = x.portal.open(x.d, 128, &x.events); err == nil {
			in := networks{{pid: x.domain}}
			x.pte, err = x.portal.add(x.d, &x.events, in, indexMemory)
		}
	}
	if err != nil {
		x.pte = nil
		return errors.Join(err, x.dismantle())
	}
	return nil
}

// dismantle gives back what open has made.
func (x *exposure) dismantle() error {
	err := errors.Join(x.portal.close(), x.events.close())
	if x.domain != nil {
		err = errors.Join(err, x.domain.Close())
	}
	x.domain, x.pte = nil, nil
	return err
}

func (x *exposure) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dismantle()
}

// takeID takes an id for an entry. False: all are taken.
func (x *exposure) takeID() (uint16, bool) {
	if x.next < math.MaxUint16 {
		x.next++
		return x.next, true
	}
	if len(x.free) == 0 {
		return 0, false
	}
	id := x.free[0]
	x.free = x.free[1:]
	return id, true
}

// add gives a region an entry, and match bits. Errors: hw.ErrNoResource.
func (x *exposure) add(m *Memory) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.open(); err != nil {
		return err
	}
	id, ok := x.takeID()
	if !ok {
		return fmt.Errorf("cxi: 65535 regions that peers reach: %w", hw.ErrNoResource)
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	key := binary.LittleEndian.Uint64(b[:]) | 1
	e := nic.Entry{
		PtlTE: x.pte.Number(), ID: id, Memory: m.local(m.addr, 0), Length: uint64(m.region.Len), MatchBits: key,
		MatchID: nic.AnyID(),
		Put:     m.region.Access&(hw.RemoteWrite|hw.RemoteAtomic) != 0,
		Get:     m.region.Access&(hw.RemoteRead|hw.RemoteAtomic) != 0, Silent: true,
	}
	code, err := x.command(&e, wire.EventLink)
	if err == nil && code != wire.RcOk {
		err = fmt.Errorf("cxi: no room for another region that peers reach (%s): %w", codeText(code), hw.ErrNoResource)
	}
	if err != nil {
		x.free = append(x.free, id)
		return err
	}
	m.key, m.id = key, id
	return nil
}

// remove takes a region's entry away. When it returns no peer is at the memory.
func (x *exposure) remove(m *Memory) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.pte.Invalidate(uint32(m.id)); err != nil && !errors.Is(err, unix.ENOSYS) &&
		!errors.Is(err, unix.ENOENT) {
		x.d.logf("cxi: region: %v", err) // the entry goes all the same
	}
	if _, err := x.command(&nic.Entry{PtlTE: x.pte.Number(), ID: m.id}, wire.EventUnlink); err != nil {
		return err
	}
	x.free = append(x.free, m.id)
	return nil
}

// command appends an entry, or unlinks it, and awaits the answer. The caller has mu.
func (x *exposure) command(e *nic.Entry, answer uint32) (code uint32, err error) {
	q := &x.portal.q
	write, what := q.Append, "append a region"
	if answer == wire.EventUnlink {
		write, what = q.Unlink, "take a region away"
	}
	if !write(e) {
		return 0, fmt.Errorf("cxi: %s: the queue is full: %w", what, hw.ErrNoResource)
	}
	q.Ring()
	err = x.events.await(what, func(v nic.Event) bool {
		code = v.Code()
		return v.Type() == answer && v.BufferID() == e.ID
	})
	return code, err
}
