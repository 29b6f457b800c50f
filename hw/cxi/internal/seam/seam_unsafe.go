// Package seam is how C calls the Go code of package cxi that sends a message and takes one in (hw.Driven): without
// the runtime (package direct). C rings the doorbells that it leaves.
package seam

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra
// #include "seam.h"
import "C"

import (
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/hot"
)

// Again is what a function for [Transport] says that is to be called again, beside hot.TransportEmpty, ….
const Again = C.WEFT_CXI_AGAIN

// Bell is a doorbell that C is to ring when the Go code has returned. With Rest it calls Functions.Rest behind it.
type Bell = hot.Bell

// Transport is an interface as C drives it (struct weft_cxi_transport), and what polls read there. It lies off the Go
// heap.
type Transport struct {
	_                 structs.HostLayout
	Hot               hot.Transport
	iface             uintptr
	enter             uintptr
	next, take, flush uintptr
	// Match is the transport of what the NIC matches.
	Match hot.MatchTransport
	rest  uintptr
	// Watch is what a poll reads to find nothing.
	Watch hot.Watch
}

// Path is the way to a peer (struct weft_cxi_path). It lies off the Go heap.
type Path struct {
	_           structs.HostLayout
	Hot         hot.Path
	peer        atomic.Uintptr // the peer's address in Go's memory; see seam.h
	enter, send uintptr
}

// The layouts agree, or this does not compile.
var (
	_ = [1]byte{}[unsafe.Offsetof(Transport{}.Watch)-C.sizeof_struct_weft_cxi_transport]
	_ = [1]byte{}[unsafe.Offsetof(Transport{}.iface)-unsafe.Offsetof(C.struct_weft_cxi_transport{}.iface)]
	_ = [1]byte{}[unsafe.Offsetof(Transport{}.Match)-unsafe.Offsetof(C.struct_weft_cxi_transport{}.match)]
	_ = [1]byte{}[unsafe.Sizeof(Path{})-C.sizeof_struct_weft_cxi_path]
	_ = [1]byte{}[unsafe.Offsetof(Path{}.peer)-unsafe.Offsetof(C.struct_weft_cxi_path{}.endpoint)]
)

// Functions are the Go functions of package cxi that C calls, and Post and Matched those that the data plane calls, as
// package direct wants them. In them a Transport, a Path, a hot.TransportMessage and a Bell are addresses.
type Functions struct {
	Send  direct.Func // path, message, bell: hot.PathSent, …
	Next  direct.Func // transport, message, bell: hot.TransportEmpty, … or Again
	Take  direct.Func // transport, bell: whether another message is at hand
	Flush direct.Func // transport, bell: whether to call again
	// of what the NIC matches; there a transport is its Match
	Post    direct.Func // transport, post, bell: hot.PathSent, …
	Matched direct.Func // transport, event, bell: hot.TransportEmpty, … or TransportAgain
	// transport, bell, from: one more queue that is to be rung, of those from a number on, and from where to go on, 0:
	// there are no others.
	Rest direct.Func
}

// Init makes a transport of zeroed memory. iface is the address of what the functions find with [Transport.Iface],
// which something else keeps alive.
func (p *Transport) Init(f *Functions, iface unsafe.Pointer) {
	C.weft_cxi_transport_init((*C.struct_weft_cxi_transport)(unsafe.Pointer(p)))
	p.iface, p.enter = uintptr(iface), direct.Trampoline()
	p.next, p.take, p.flush = direct.Entry(f.Next), direct.Entry(f.Take), direct.Entry(f.Flush)
	p.rest = direct.Entry(f.Rest)
	p.Match.Post, p.Match.Next = direct.Entry(f.Post), direct.Entry(f.Matched)
	p.Match.Watch = uintptr(unsafe.Pointer(&p.Watch))
}

// Init makes a path of zeroed memory, over which messages of up to limit bytes go.
func (p *Path) Init(f *Functions, limit uint32) {
	C.weft_cxi_path_init((*C.struct_weft_cxi_path)(unsafe.Pointer(p)))
	p.Hot.Max, p.enter, p.send = limit, direct.Trampoline(), direct.Entry(f.Send)
}

// Possible reports whether C can call Go code so.
func Possible() bool { return direct.Trampoline() != 0 }

// Iface is what Init was given.
func (p *Transport) Iface() unsafe.Pointer { return at(p.iface) }

// SetPeer says to which peer the path leads; nil: to none any more.
func (p *Path) SetPeer(peer unsafe.Pointer) { p.peer.Store(uintptr(peer)) }

// Peer is what SetPeer said last. A caller keeps it only for a post (hot.EpochReader).
func (p *Path) Peer() unsafe.Pointer { return at(p.peer.Load()) }

// TransportAt is a transport by its address, PathAt a path, MessageAt a message and BellAt a doorbell.
func TransportAt(address uintptr) *Transport { return (*Transport)(at(address)) }

// MatchTransportAt is the transport to which a Transport.Match belongs, by the address of that.
func MatchTransportAt(address uintptr) *Transport {
	return TransportAt(address - unsafe.Offsetof(Transport{}.Match))
}

// MatchPostAt is a post by its address, MatchEventAt an event.
func MatchPostAt(address uintptr) *hot.MatchPost { return (*hot.MatchPost)(at(address)) }

// MatchEventAt is an event by its address.
func MatchEventAt(address uintptr) *hot.MatchEvent { return (*hot.MatchEvent)(at(address)) }

// PathAt is a path by its address.
func PathAt(address uintptr) *Path { return (*Path)(at(address)) }

// MessageAt is a message by its address.
func MessageAt(address uintptr) *hot.TransportMessage { return (*hot.TransportMessage)(at(address)) }

// BellAt is a doorbell by its address.
func BellAt(address uintptr) *Bell { return (*Bell)(at(address)) }

// Bytes views memory of C's that is valid for as long as the call.
func Bytes(address uintptr, n uint32) []byte { return unsafe.Slice((*byte)(at(address)), n) }

// at turns an address into a pointer: of memory off the Go heap, or that something else keeps alive.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
