package cq

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
)

// Entry is a completion: [hot.CQE] without its sequence word, field by field.
type Entry struct {
	Context uint64 // what the operation was posted with
	Flags   uint64 // fi.Send, fi.Recv, fi.Tagged, ... as fi_cq(3) lists them
	Len     uint64 // bytes received
	Buf     uint64 // address where they are
	Data    uint64 // remote CQ data
	Tag     uint64
	Src     fi.Addr // fi.AddrNotAvail where there is none
}

// ErrorInfo is what an error completion says beyond the [Entry].
type ErrorInfo struct {
	Err       fi.Errno
	ProvErrno int32  // 0: the same as Err
	OLen      uint64 // bytes that did not fit the buffer
	ErrData   []byte // copied, at most MaxErrData bytes
}

// ErrEntry is an error completion as [Queue.ReadErr] returns it.
type ErrEntry struct {
	Entry
	OLen      uint64
	Err       fi.Errno
	ProvErrno int32
	// ErrData is memory of the queue, off the Go heap, nil if there is none. It
	// stays as it is until the next ReadErr that returns an entry.
	ErrData []byte
}

// MaxErrData is the most bytes of [ErrorInfo].ErrData that are kept.
const MaxErrData = 92

// EntrySize returns the size in bytes of an entry of a format in C, 0 for an
// unknown one.
func EntrySize(format fi.CQFormat) int {
	switch format {
	case fi.CQFormatContext:
		return 8
	case fi.CQFormatMsg:
		return 24
	case fi.CQFormatData:
		return 40
	case fi.CQFormatTagged:
		return 48
	}
	return 0
}

// Put stores e at the start of dst as the C struct of a format and returns the
// rest of dst, which must have [EntrySize] bytes or more.
func (e *Entry) Put(dst []byte, format fi.CQFormat) []byte {
	words := [...]uint64{e.Context, e.Flags, e.Len, e.Buf, e.Data, e.Tag}
	for _, w := range words[:EntrySize(format)/8] {
		binary.LittleEndian.PutUint64(dst, w)
		dst = dst[8:]
	}
	return dst
}
