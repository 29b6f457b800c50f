package libcxi

// #include "cxi.h"
import "C"

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LNI is the process's share of a NIC under one service.
type LNI struct{ p *C.struct_weft_cxi_lni }

// NewLNI makes an LNI. Errors: EPERM where the service does not admit this process.
func (d *Device) NewLNI(service uint32) (*LNI, error) {
	l := new(LNI)
	if err := check(fmt.Sprintf("use service %d", service),
		C.weft_cxi_alloc_lni(d.p, C.uint32_t(service), &l.p)); err != nil {
		return nil, err
	}
	return l, nil
}

// Close gives it back.
func (l *LNI) Close() error { return check("leave the service", C.weft_cxi_destroy_lni(l.p)) }

// Traffic classes.
const (
	TCDedicated  = 0
	TCLowLatency = 1
	TCBulk       = 2
	TCBestEffort = 3
)

// Types of traffic within a class.
const (
	TypeDefault    = 0
	TypeRestricted = 2 // of restricted commands alone
)

// Profile is a communication profile: under which VNI, traffic class and type a queue sends.
type Profile struct{ p *C.struct_weft_cxi_cp }

// NewProfile makes a profile. Errors: EINVAL, EPERM for a VNI or class that the service does not have, ENOSPC.
func (l *LNI) NewProfile(vni uint16, class, kind uint32) (*Profile, error) {
	c := new(Profile)
	step := fmt.Sprintf("communication profile for VNI %d, traffic class %d, type %d", vni, class, kind)
	if err := check(step, C.weft_cxi_alloc_cp(l.p, C.uint32_t(vni), C.uint32_t(class), C.uint32_t(kind),
		&c.p)); err != nil {
		return nil, err
	}
	return c, nil
}

// LCID is its number in commands, 0 to 15.
func (c *Profile) LCID() uint32 { return uint32(c.p.lcid) }

// Close gives it back.
func (c *Profile) Close() error { return check("end a profile", C.weft_cxi_destroy_cp(c.p)) }

// Domain is a PID in a VNI: the part of an address that names a process's receiver.
type Domain struct{ p *C.struct_weft_cxi_domain }

// AnyPID has NewDomain choose.
const AnyPID = 511

// NewDomain takes a PID. Errors: EEXIST or ENOSPC when it is, or all are, taken.
func (l *LNI) NewDomain(vni uint16, pid uint32) (*Domain, error) {
	d := new(Domain)
	if err := check(fmt.Sprintf("take a PID in VNI %d", vni), C.weft_cxi_alloc_domain(l.p, C.uint32_t(vni), C.uint32_t(pid), &d.p)); err != nil {
		return nil, err
	}
	return d, nil
}

// PID is the number.
func (d *Domain) PID() uint32 { return uint32(d.p.pid) }

// Close gives it back.
func (d *Domain) Close() error { return check("give a PID back", C.weft_cxi_destroy_domain(d.p)) }

// Flags of mappings.
const (
	MapPin   = 1 << 0
	MapWrite = 1 << 2
	MapRead  = 1 << 3
)

// MD is memory that the NIC reaches.
type MD struct{ p *C.struct_weft_cxi_md }

// Map makes n bytes at addr known to the NIC. Errors: EFAULT, EINVAL for memory that is not mapped so; ENOMEM,
// ENOSPC.
func (l *LNI) Map(addr, n uint64, flags uint32) (*MD, error) {
	m := new(MD)
	step := fmt.Sprintf("map %d bytes", n)
	if err := check(step, C.weft_cxi_map(l.p, C.uintptr_t(addr), C.size_t(n), C.uint32_t(flags), &m.p)); err != nil {
		return nil, err
	}
	return m, nil
}

// IOVA is the NIC's address of addr, which lies in the memory.
func (m *MD) IOVA(addr uint64) uint64 { return uint64(m.p.iova) + (addr - uint64(m.p.va)) }

// LAC is the number of its address context in commands.
func (m *MD) LAC() uint32 { return uint32(m.p.lac) }

// Close ends the mapping.
func (m *MD) Close() error { return check("unmap", C.weft_cxi_unmap(m.p)) }

// WaitObject has a descriptor that raises POLLPRI when one of its event queues has an event.
type WaitObject struct{ p unsafe.Pointer }

// NewWaitObject makes one.
func (l *LNI) NewWaitObject() (*WaitObject, error) {
	w := new(WaitObject)
	if err := check("wait object", C.weft_cxi_alloc_wait(l.p, &w.p)); err != nil {
		return nil, err
	}
	return w, nil
}

// FD is the descriptor.
func (w *WaitObject) FD() int { return int(C.weft_cxi_wait_fd(w.p)) }

// Clear makes the descriptor quiet.
func (w *WaitObject) Clear() { C.weft_cxi_clear_wait(w.p) }

// Close gives it back.
func (w *WaitObject) Close() error { return check("end a wait object", C.weft_cxi_destroy_wait(w.p)) }

// Flags of event queues.
const (
	EQTargetLong = 1 << 3 // events of targets have 64 bytes
	EQImmediate  = 1 << 6 // events do not wait for others to come together
)

// EQ is an event queue.
type EQ struct{ p *C.struct_weft_cxi_eq }

// NewEQ makes an event queue in n bytes at addr, whole pages that md maps, which the caller keeps. wait may be nil.
// reserved blocks of 64 bytes are kept for changes of state.
func (l *LNI) NewEQ(md *MD, addr uint64, n int, flags uint64, wait *WaitObject, reserved uint32) (*EQ, error) {
	q := new(EQ)
	var w unsafe.Pointer
	if wait != nil {
		w = wait.p
	}
	rc := C.weft_cxi_alloc_evtq(l.p, md.p, C.uintptr_t(addr), C.size_t(n), C.uint64_t(flags), w, C.uint32_t(reserved),
		&q.p)
	if err := check("event queue", rc); err != nil {
		return nil, err
	}
	return q, nil
}

// Number is its number in commands.
func (q *EQ) Number() uint32 { return uint32(q.p.eqn) }

// Bytes is its length.
func (q *EQ) Bytes() uint32 { return uint32(q.p.bytes) }

// Events is where its events are, behind a status of 64 bytes.
func (q *EQ) Events() unsafe.Pointer { return unsafe.Pointer(q.p.events) }

// State is the word by which software says how far it has read.
func (q *EQ) State() unsafe.Pointer { return unsafe.Pointer(q.p.sw_state_addr) }

// Close gives it back.
func (q *EQ) Close() error { return check("end an event queue", C.weft_cxi_destroy_evtq(q.p)) }

// CQ is a command queue.
type CQ struct{ p *C.struct_weft_cxi_cq }

// Flags and policies of command queues.
const (
	cqTransmit    = 1 << 1
	policyAlways  = 0 // the read pointer is written back whenever it moves
	policyAtEmpty = 2 // when the queue is empty, and now and then
)

// NewTransmitQueue makes a queue of slots commands of 64 bytes that are sent under the profile. eq gets what it
// refuses.
func (l *LNI) NewTransmitQueue(slots int, c *Profile, eq *EQ) (*CQ, error) {
	return l.newCQ(eq, &C.struct_weft_cxi_cq_opts{count: C.uint32_t(slots), policy: policyAtEmpty, flags: cqTransmit, lcid: C.uint32_t(c.LCID())})
}

// NewTargetQueue makes a queue of slots commands that change lists.
func (l *LNI) NewTargetQueue(slots int, eq *EQ) (*CQ, error) {
	return l.newCQ(eq, &C.struct_weft_cxi_cq_opts{count: C.uint32_t(slots), policy: policyAlways})
}

func (l *LNI) newCQ(eq *EQ, opts *C.struct_weft_cxi_cq_opts) (*CQ, error) {
	q := new(CQ)
	if err := check("command queue", C.weft_cxi_alloc_cmdq(l.p, eq.p, opts, &q.p)); err != nil {
		return nil, err
	}
	return q, nil
}

// Ring is where its commands are, behind a status of 256 bytes.
func (q *CQ) Ring() unsafe.Pointer { return unsafe.Pointer(q.p.ring) }

// HalfSlots is the ring's length in units of 32 bytes.
func (q *CQ) HalfSlots() uint32 { return uint32(q.p.size32) }

// Launch is the word by which software says how far it has written.
func (q *CQ) Launch() unsafe.Pointer { return unsafe.Pointer(q.p.launch) }

// Close gives it back.
func (q *CQ) Close() error { return check("end a command queue", C.weft_cxi_destroy_cmdq(q.p)) }

// Options of portal table entries.
const (
	PtlTEMatching = 1 << 7 // entries are chosen by match bits
	PtlTELong     = 1 << 3 // events have 64 bytes
	// PtlTEFlow disables the entry when messages find no room, so that none behind them is taken.
	PtlTEFlow = 1 << 2
)

// PtlTE is a portal table entry: what peers' commands name by an index.
type PtlTE struct {
	p  *C.struct_weft_cxi_pte
	at []unsafe.Pointer // its places in a domain
}

// NewPtlTE makes an entry, disabled, at an index of a domain.
func (l *LNI) NewPtlTE(eq *EQ, options uint64, d *Domain, index uint32) (*PtlTE, error) {
	t := new(PtlTE)
	if err := check("portal table entry", C.weft_cxi_alloc_pte(l.p, eq.p, C.uint64_t(options), &t.p)); err != nil {
		return nil, err
	}
	if err := t.Place(d, index); err != nil {
		C.weft_cxi_destroy_pte(t.p)
		return nil, err
	}
	return t, nil
}

// Place puts the entry at one more index of a domain.
func (t *PtlTE) Place(d *Domain, index uint32) error {
	var at unsafe.Pointer
	if err := check(fmt.Sprintf("portal index %d", index), C.weft_cxi_map_pte(t.p, d.p, C.uint32_t(index),
		&at)); err != nil {
		return err
	}
	t.at = append(t.at, at)
	return nil
}

// Number is its number in commands of this side.
func (t *PtlTE) Number() uint32 { return uint32(t.p.ptn) }

// Invalidate ends accesses that are under way to the entry of the priority list with this id.
func (t *PtlTE) Invalidate(id uint32) error {
	return check("invalidate a list entry", C.weft_cxi_invalidate_pte_le(t.p, C.uint32_t(id), 0))
}

// Offsets are where unexpected messages are at their senders, in the order of the list.
func (t *PtlTE) Offsets() ([]uint64, error) {
	for room := 512; ; {
		list := make([]uint64, room)
		n, drops := C.uint32_t(room), C.uint32_t(0)
		if err := check("unexpected messages", C.weft_cxi_pte_status(t.p, (*C.uint64_t)(unsafe.SliceData(list)),
			&n, &drops)); err != nil {
			return nil, err
		}
		if int(n) <= room {
			return list[:n], nil
		}
		room = int(n)
	}
}

// Drops is how many messages it has dropped since it was disabled, of 24 bits.
func (t *PtlTE) Drops() (uint32, error) {
	var n, drops C.uint32_t
	err := check("dropped messages", C.weft_cxi_pte_status(t.p, nil, &n, &drops))
	return uint32(drops), err
}

// Manages reports whether the library has what Manage needs.
func Manages() bool { return C.weft_cxi_manages() != 0 }

// Manage has an entry that is disabled leave matching to software, if it has dropped so many messages, of which the
// lower 24 bits count. False: another number.
func (t *PtlTE) Manage(drops uint32) (bool, error) {
	rc := C.weft_cxi_pte_transition_sm(t.p, C.uint32_t(drops&(1<<24-1)))
	if rc == -C.int(unix.EAGAIN) {
		return false, nil
	}
	return rc == 0, check("leave matching to software", rc)
}

// Close takes it from its indices and gives it back.
func (t *PtlTE) Close() error {
	for len(t.at) > 0 {
		if err := check("free a portal index", C.weft_cxi_unmap_pte(t.at[len(t.at)-1])); err != nil {
			return err
		}
		t.at = t.at[:len(t.at)-1]
	}
	return check("end a portal table entry", C.weft_cxi_destroy_pte(t.p))
}
