// Package drive calls the functions that a backend gives to C (hw.Driven), as the
// data plane does, for tests.
package drive

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra
// #include "drive.h"
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Message is what Next found, copied.
type Message struct {
	ID            hw.AMID
	Source        hw.Source
	Header        uint64
	Head, Payload []byte
}

// Next polls a transport for a message and returns it with hot.TransportArrival; the same
// again until Take. The caller holds the progress lease.
func Next(p *hot.Transport) (Message, int) {
	var m hot.TransportMessage
	found := int(C.weft_drive_next((*C.struct_weft_hot_transport)(unsafe.Pointer(p)),
		(*C.struct_weft_transport_message)(unsafe.Pointer(&m))))
	return copied(&m, found)
}

// Polls polls a transport so many times in a row and returns how many found nothing. The caller holds the progress
// lease.
func Polls(p *hot.Transport, times int) int {
	return int(C.weft_drive_polls((*C.struct_weft_hot_transport)(unsafe.Pointer(p)), C.int(times)))
}

// Takes takes messages in, times at most, as long as each poll finds one, and returns how many there were. The caller
// holds the progress lease.
func Takes(p *hot.Transport, times int) int {
	return int(C.weft_drive_takes((*C.struct_weft_hot_transport)(unsafe.Pointer(p)), C.int(times)))
}

// Peek is Next of senders only whose messages ring no bell.
func Peek(p *hot.Transport) (Message, int) {
	var m hot.TransportMessage
	found := int(C.weft_drive_peek((*C.struct_weft_hot_transport)(unsafe.Pointer(p)),
		(*C.struct_weft_transport_message)(unsafe.Pointer(&m))))
	return copied(&m, found)
}

func copied(m *hot.TransportMessage, found int) (Message, int) {
	if found != hot.TransportArrival {
		return Message{}, found
	}
	b := C.GoBytes(*(*unsafe.Pointer)(unsafe.Pointer(&m.Head)), C.int(uint32(m.HeadBytes)+m.Length))
	return Message{ID: hw.AMID(m.ID), Source: hw.Source(m.Source), Header: m.Header, Head: b[:m.HeadBytes],
		Payload: bytes.Clone(b[m.HeadBytes:])}, found
}

// Take is done with the message that Next found, and reports whether another one is at
// hand.
func Take(p *hot.Transport) bool {
	return C.weft_drive_take((*C.struct_weft_hot_transport)(unsafe.Pointer(p))) != 0
}

// Flush sends what a transport holds. The caller holds the progress lease.
func Flush(p *hot.Transport) { C.weft_drive_flush((*C.struct_weft_hot_transport)(unsafe.Pointer(p))) }

// Send sends a message that is not corked and returns hot.PathSent, PathFull or PathGo.
func Send(p *hot.Path, id hw.AMID, header uint64, head, payload []byte) int {
	return SendHold(p, id, header, head, payload, hot.HoldNever)
}

// SendHold is Send for a message that may be corked, hot.HoldNever to HoldMore; it may
// return hot.PathCorked. One thread at a time sends so over an interface.
func SendHold(p *hot.Path, id hw.AMID, header uint64, head, payload []byte, hold int) int {
	return int(C.weft_drive_send((*C.struct_weft_hot_path)(unsafe.Pointer(p)), C.uint64_t(header),
		unsafe.Pointer(unsafe.SliceData(head)), C.uint32_t(len(head)),
		unsafe.Pointer(unsafe.SliceData(payload)), C.uint32_t(len(payload)), C.uint32_t(id), C.uint32_t(hold)))
}

// Sends sends a message so many times in a row, none of which is corked, as long as there is room, and returns how many
// were sent.
func Sends(p *hot.Path, id hw.AMID, payload []byte, times int) int {
	return int(C.weft_drive_sends((*C.struct_weft_hot_path)(unsafe.Pointer(p)),
		unsafe.Pointer(unsafe.SliceData(payload)),
		C.uint32_t(len(payload)), C.uint32_t(id), C.int(times)))
}
