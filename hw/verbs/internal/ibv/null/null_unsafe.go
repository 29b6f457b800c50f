// Package null is a queue pair that takes work requests and does nothing, and
// queues that tests fill, to measure and test what is above them without a device.
package null

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra
// #include "null.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// QP returns the queue pair; there is one.
func QP() *ibv.QP { return ibv.WrapQP(unsafe.Pointer(C.weft_null_qp()), 1, 256) }

// Taken is the number of work requests that it has taken.
func Taken() uint64 { return uint64(C.weft_null_taken()) }

// Doorbells is how often it was given some.
func Doorbells() uint64 { return uint64(C.weft_null_doorbells()) }

// Signaled is how many of those that it has taken were to write a completion.
func Signaled() uint64 { return uint64(C.weft_null_asked()) }

// Request is a work request that the queue pair has taken.
type Request struct {
	ID, RemoteAddr      uint64
	Opcode, Flags, RKey uint32
	SGE                 []ibv.SGE
}

// LastRequest is the one that was taken n before the last, 0 to 63.
func LastRequest(n int) Request {
	r := C.weft_null_request(C.unsigned(n))
	to := Request{ID: uint64(r.wr_id), RemoteAddr: uint64(r.remote_addr), Opcode: uint32(r.opcode),
		Flags: uint32(r.flags), RKey: uint32(r.rkey)}
	for _, s := range r.sge[:r.nsge] {
		to.SGE = append(to.SGE, ibv.SGE{Addr: uint64(s.addr), Len: uint32(s.length), LKey: uint32(s.lkey)})
	}
	return to
}

// LimitQP has queue pairs be refused that are to take more local pieces in a request, or more bytes that are in it,
// from now on.
func LimitQP(pieces, inline int) { C.weft_null_qp_limit(C.uint32_t(pieces), C.uint32_t(inline)) }

// RefuseStates has changes of queue pairs' states be refused with an errno from now on, 0: with none.
func RefuseStates(errno int) { C.weft_null_qp_refuse(C.int(errno)) }

// Inline is how many bytes may be in a request of the last queue pair that was made.
func Inline() int { return int(C.weft_null_qp_inline()) }

// Pieces is how many the last queue pair that was made takes.
func Pieces() int { return int(C.weft_null_qp_pieces()) }

// Loop posts n inline sends of length bytes from a loop in C.
func Loop(n, length int) { C.weft_null_loop(C.weft_null_qp(), C.int(n), C.int(length)) }

// CQ returns completion queue n, 0 or 1, emptied.
func CQ(n int) *ibv.CQ { return ibv.WrapCQ(unsafe.Pointer(C.weft_null_cq(C.int(n)))) }

// Complete puts a completion into queue n.
func Complete(n int, d ibv.Done) {
	C.weft_null_complete(C.int(n), C.uint64_t(d.ID), C.uint32_t(d.Status), C.uint32_t(d.Opcode), C.uint32_t(d.Bytes),
		C.uint32_t(d.QP))
}

// Polls is how often queue n was polled.
func Polls(n int) uint64 { return uint64(C.weft_null_polls(C.int(n))) }

// Device returns a device with a clock of ClockMask and ClockKHz, which can be read or not. Of its calls there are
// those for the clock, and for a completion queue with stamps: that is queue 1, emptied.
func Device(readable bool) *ibv.Context {
	n := C.int(0)
	if readable {
		n = 1
	}
	return ibv.WrapContext(unsafe.Pointer(C.weft_null_device(n)))
}

// The clock of Device.
const (
	ClockMask = C.WEFT_NULL_CLOCK_MASK
	ClockKHz  = C.WEFT_NULL_CLOCK_KHZ
)

// SetClock says what the clock says from now on, and what completions are stamped with that come.
func SetClock(ticks uint64) { C.weft_null_set_clock(C.uint64_t(ticks)) }

// ClockReads is how often the clock was read.
func ClockReads() uint64 { return uint64(C.weft_null_clock_reads()) }

// SRQ returns the shared receive queue; there is one. It begins empty.
func SRQ() *ibv.SRQ { return ibv.WrapSRQ(unsafe.Pointer(C.weft_null_srq())) }

// Buffers is the number of buffers that the shared receive queue was given.
func Buffers() uint64 { return uint64(C.weft_null_buffers()) }

// PD returns a protection domain, with which memory is registered and queue pairs are made, all of which are QP,
// without a device until undo is called. old: the library has no call for dma-bufs.
func PD(old bool) (pd *ibv.PD, undo func()) {
	calls := ibv.Calls{
		C.weft_null_reg_mr(), C.weft_null_reg_dmabuf_mr(), C.weft_null_dereg_mr(),
		C.weft_null_create_qp(), C.weft_null_modify_qp(), C.weft_null_destroy_qp(),
	}
	if old {
		calls[1] = nil
	}
	C.weft_null_refuse(0)
	C.weft_null_qp_limit(C.WEFT_GATHER, C.UINT32_MAX)
	C.weft_null_qp_refuse(0)
	was := ibv.Swap(calls)
	return ibv.WrapPD(unsafe.Pointer(C.weft_null_pd())), func() { ibv.Swap(was) }
}

// RefuseDMABufs has dma-bufs be refused with an errno from now on, 0: with none.
func RefuseDMABufs(errno int) { C.weft_null_refuse(C.int(errno)) }

// Regions is how much is registered with PD.
func Regions() int { return int(C.weft_null_regions()) }

// DMABuf is what a dma-buf was registered as.
type DMABuf struct {
	FD              int
	Offset, Len, At uint64
	Access          uint32
}

// LastDMABuf is the last that was registered with PD.
func LastDMABuf() DMABuf {
	d := C.weft_null_last()
	return DMABuf{int(d.fd), uint64(d.offset), uint64(d.len), uint64(d.at), uint32(d.access)}
}
