package nic

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

const (
	halfSlot  = 32                      // bytes
	firstHalf = 2 * wire.LimitCmdqFirst // the ring's start is the status
	reserve   = 16                      // half slots below which the NIC's position is read again
)

// Queue is a command queue: a ring of commands in units of 32 bytes, and the launch word by which the NIC learns of
// them.
type Queue struct {
	ring   unsafe.Pointer // its first word is the status
	launch unsafe.Pointer
	size   uint32 // half slots
	wp     uint32 // where the next command goes
	rung   uint32 // up to which the doorbell was rung
	spare  int32  // half slots that may be written, by what is known of the NIC's position
	// profile is that of the commands to come.
	profile uint32
	last    uint32    // where the last command begins
	laps    uint32    // how often the ring was begun anew
	lap     uint32    // and that when the last command was begun
	state   [4]uint64 // of inline commands ([Queue.SetState]); the first word is 0: none that is known
	// Bells counts doorbells.
	Bells uint64
}

// Init makes a queue of a ring of size half slots at ring and its launch word.
func (q *Queue) Init(ring, launch unsafe.Pointer, size uint32) {
	*q = Queue{ring: ring, launch: launch, size: size, wp: firstHalf, rung: firstHalf}
	q.spare = q.free(firstHalf)
}

// free is the number of half slots that may be written where the NIC has read up to one.
func (q *Queue) free(rp uint32) int32 {
	if q.wp >= rp {
		return int32(q.size-q.wp) + int32(rp) - firstHalf - 2
	}
	return int32(rp-q.wp) - 2
}

// room reports whether n half slots are free.
func (q *Queue) room(n int32) bool { return q.spare >= max(n, reserve) || q.read(n) }

// read is room by where the NIC is.
func (q *Queue) read(n int32) bool {
	q.spare = q.free(2 * uint32(atomic.LoadUint64((*uint64)(q.ring))&wire.CmdqStatusRdPtrMask))
	return q.spare >= n
}

// Room reports whether a number of commands of 256 bytes fit, each behind a state and a command that changes the
// profile: 8 half slots, 1 and 2, with 7 for padding at most.
func (q *Queue) Room(commands int) bool { return q.room(18 * int32(commands)) }

// SetProfile says which communication profile commands have until one to an address with another. A queue that is used
// under one profile alone needs none: addresses of profile 0 have that with which it was made.
func (q *Queue) SetProfile(profile uint32) { q.profile = profile }

// NoProfile has the next command set its profile, whichever that is.
func (q *Queue) NoProfile() { q.profile = noProfile }

// noProfile is no profile's number.
const noProfile = ^uint32(0)

// at is the half slot n.
func (q *Queue) at(n uint32) unsafe.Pointer { return unsafe.Add(q.ring, uintptr(n)*halfSlot) }

// begin returns where a command of class size (wire.CmdSize) goes, behind padding so that it does not cross a multiple
// of its size; nil: there is no room.
func (q *Queue) begin(size uint32) *[32]uint64 {
	n := uint32(1) << size
	pad := -q.wp & (n - 1)
	if !q.room(int32(pad + n)) {
		return nil
	}
	for ; pad > 0; pad-- {
		q.skip()
	}
	p := (*[32]uint64)(q.at(q.wp))
	q.last, q.lap = q.wp, q.laps
	q.advance(n)
	return p
}

// skip writes a command that does nothing.
func (q *Queue) skip() {
	*(*uint64)(q.at(q.wp)) = 0
	q.advance(1)
}

func (q *Queue) advance(n uint32) {
	q.spare -= int32(n)
	if q.wp += n; q.wp >= q.size {
		q.wp = firstHalf
		q.laps++
	}
}

// Lap is how often the ring had been begun anew when the last command was.
func (q *Queue) Lap() uint32 { return q.lap }

// Rewritten reports whether something was written over the beginning of a command, of which slot and lap are known.
func (q *Queue) Rewritten(slot, lap uint32) bool {
	n := q.laps - lap
	return n > 1 || n == 1 && q.wp > 2*slot
}

// LastSlot is where the last command lies, if it has 64 bytes: as [Event.Slot] names one that is refused.
func (q *Queue) LastSlot() uint32 {
	if q.wp == firstHalf {
		return q.size/2 - 1
	}
	return q.wp/2 - 1
}

// Slot is where the last command begins: as [Event.Slot] names one that is refused.
func (q *Queue) Slot() uint32 { return q.last / 2 }

// Waiting reports whether there are commands that the NIC does not know of.
func (q *Queue) Waiting() bool { return q.wp != q.rung }

// Ring rings the doorbell for all commands.
func (q *Queue) Ring() {
	if q.Waiting() {
		Bell(q.Due())
	}
}

// Due returns the doorbell of all commands, which the caller rings. There are some.
func (q *Queue) Due() (launch unsafe.Pointer, value uint64) {
	if q.wp&1 != 0 {
		q.skip()
	}
	q.rung = q.wp
	q.Bells++
	return q.launch, uint64(q.wp / 2)
}

// Idle reports whether the NIC has read all commands.
func (q *Queue) Idle() bool {
	return !q.Waiting() && uint32(atomic.LoadUint64((*uint64)(q.ring))&wire.CmdqStatusRdPtrMask) == q.wp/2
}
