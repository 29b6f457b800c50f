// Package target is where the message of a matched receive goes: the buffer, or the vector of buffers, of a receive
// that is out of matching, and what its completion says.
package target

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/vector"
)

// Target is where the message of a receive goes, and what its completion says. It holds no Go pointer: a vector lies,
// as the buffers do, in memory that the collector neither moves nor frees, until the receive has completed.
type Target struct {
	Buf     uint64 // the buffer, or with hot.RecvIOV in Flags a vector of fi.IOVec
	Len     uint64 // bytes of the buffer, or elements of the vector
	Context uint64 // of the completion
	Flags   uint64 // of the receive: hot.Recv*, fi.Completion, fi.MultiRecv
	Entry   uint64 // of the owner of an imported receive context, 0: the receive is weft's
}

// Vector reports whether the target is a vector.
func (t *Target) Vector() bool { return t.Flags&hot.RecvIOV != 0 }

// Device reports whether part of it is device memory.
func (t *Target) Device() bool { return t.Flags&hot.RecvDevice != 0 }

// Named is the address that a completion names: the first byte's, as the application knows it.
func (t *Target) Named() uint64 {
	if t.Device() {
		return hmem.AppAddress(t.First())
	}
	return t.First()
}

// First is where the first byte is. A vector has one element at least.
func (t *Target) First() uint64 {
	if !t.Vector() {
		return t.Buf
	}
	return uint64(vector.At(t.Buf, 1)[0].Base)
}

// Room is the length in bytes.
func (t *Target) Room() uint64 {
	if !t.Vector() {
		return t.Len
	}
	sum := uint64(0)
	for _, v := range vector.At(t.Buf, t.Len) {
		sum += v.Len
	}
	return sum
}

// Segments appends the pieces that hold the bytes from offset to offset+n, as far as the target reaches. One buffer's
// length is not checked.
func (t *Target) Segments(to []hw.Segment, offset, n uint64) []hw.Segment {
	if !t.Vector() {
		return append(to, segment(t.Buf+offset, n))
	}
	span := vector.Span{Offset: offset, N: n}
	for _, v := range vector.At(t.Buf, t.Len) {
		if at, n := span.Take(v.Len); n != 0 {
			to = append(to, segment(uint64(v.Base)+at, n))
		}
	}
	return to
}

// Scatter copies a payload to the target as far as it reaches, and returns the bytes copied. It fails only for memory
// of devices.
func (t *Target) Scatter(payload []byte) (uint64, error) {
	if t.Device() {
		return t.scatterDevice(payload)
	}
	if !t.Vector() {
		return uint64(copy(mem.Bytes(t.Buf, min(t.Len, uint64(len(payload)))), payload)), nil
	}
	done := 0
	for _, v := range vector.At(t.Buf, t.Len) {
		done += copy(mem.Bytes(uint64(v.Base), v.Len), payload[done:])
	}
	return uint64(done), nil
}

// scatterDevice is Scatter where part of the target is device memory.
func (t *Target) scatterDevice(payload []byte) (done uint64, err error) {
	n := min(t.Room(), uint64(len(payload)))
	if !t.Vector() {
		return n, hmem.Store(t.Buf, payload[:n])
	}
	for _, v := range vector.At(t.Buf, t.Len) {
		part := min(v.Len, n-done)
		if e := hmem.Store(uint64(v.Base), payload[done:done+part]); e != nil {
			err = e
		}
		done += part
	}
	return done, err
}

// segment is n bytes at an address as a transport takes them.
func segment(addr, n uint64) hw.Segment { return hw.Segment{Addr: mem.Pointer(addr), Len: int(n)} }
