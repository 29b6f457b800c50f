package main

// #include "goapi.h"
// #include "peer.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// peerOwner is another provider's shared receive context, as Go asks it.
type peerOwner struct{ srx *C.struct_weft_peer_srx }

// entryAt turns the number by which Go knows an entry into the entry.
func entryAt(n uint64) *C.struct_weft_peer_entry {
	p := uintptr(n)
	return *(**C.struct_weft_peer_entry)(unsafe.Pointer(&p)) // memory of the owner's
}

// errnoOf is the errno of a C function's result.
func errnoOf(rc C.int) fi.Errno {
	if rc >= 0 {
		return fi.Success
	}
	return fi.Errno(-rc)
}

func (o peerOwner) Get(tagged bool, addr fi.Addr, size, tag uint64) (uint64, fi.Errno) {
	var entry *C.struct_weft_peer_entry
	status := errnoOf(C.weft_peer_get(o.srx, boolToC(tagged), C.uint64_t(addr), C.size_t(size), C.uint64_t(tag),
		&entry))
	if entry == nil && (status == fi.Success || status == fi.ENOENT) {
		status = fi.EINVAL // not what fi_peer(3) says
	}
	return uint64(uintptr(unsafe.Pointer(entry))), status
}

func (o peerOwner) Queue(tagged bool, entry, id, data, flags uint64) fi.Errno {
	return errnoOf(C.weft_peer_queue(o.srx, boolToC(tagged), entryAt(entry), C.uint64_t(id), C.uint64_t(data),
		C.uint64_t(flags)))
}

func (o peerOwner) Receive(entry uint64) provider.PeerReceive {
	e := entryAt(entry)
	r := provider.PeerReceive{
		IOV: view[fi.IOVec](unsafe.Pointer(e.iov), e.count), Context: uint64(uintptr(e.context)),
		Flags: uint64(e.flags),
	}
	if e.desc != nil {
		r.Descs = view[uint64](unsafe.Pointer(e.desc), e.count)
	}
	return r
}

func (o peerOwner) Free(entry uint64) { C.weft_peer_free(o.srx, entryAt(entry)) }

func (o peerOwner) Inserted() { C.weft_peer_inserted(o.srx) }

func boolToC(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// peerRxOpened opens a shared receive context that another provider has imported.
func peerRxOpened(
	d *provider.Domain, attr C.struct_fi_rx_attr, o *C.struct_weft_ep_obj, out *C.struct_weft_opened,
) error {
	if status := errnoOf(C.weft_peer_srx_import(o)); status != fi.Success {
		return status
	}
	attr.op_flags &^= C.FI_PEER
	s, err := d.OpenPeerRx(rxFromC(&attr), peerOwner{o.imported})
	if err != nil {
		return err
	}
	if out.handle, err = enter(s); err != nil {
		return err
	}
	s.SetHandle(uint64(out.handle))
	return nil
}

//export weftGoPeerStart
func weftGoPeerStart(entry *C.struct_weft_peer_entry, id C.uint64_t) (rc C.int) {
	defer guard("start of a message by the receive context's owner", &rc)
	return result(provider.StartPeer(uint64(uintptr(unsafe.Pointer(entry))), uint64(id)))
}

//export weftGoPeerDiscard
func weftGoPeerDiscard(id C.uint64_t) (rc C.int) {
	defer guard("discard by the receive context's owner", &rc)
	return result(provider.DiscardPeer(uint64(id)))
}

//export weftGoPeerAddr
func weftGoPeerAddr(id C.uint64_t) C.uint64_t {
	return C.uint64_t(provider.PeerAddr(uint64(id)))
}
