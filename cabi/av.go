package main

// #include "goapi.h"
// #include "peer.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// self goes into the events of asynchronous inserts.
//
//export weftGoAVOpen
func weftGoAVOpen(
	domain C.uint64_t, attr *C.struct_fi_av_attr, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_av_open", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	own := *attr // what the application gave stays as it is where the vector is a peer's
	if own.flags&C.FI_PEER != 0 {
		own.flags &^= C.FI_PEER
		if rc := C.weft_peer_av_import(&own, (*C.struct_fid)(self).context); rc != 0 {
			return rc
		}
		attr = &own
	}
	a := &fi.AVAttr{
		Type: fi.AVType(attr._type), RxCtxBits: int(attr.rx_ctx_bits), Count: uint64(attr.count),
		EPPerNode: uint64(attr.ep_per_node), Name: text(attr.name), MapAddr: uintptr(attr.map_addr),
		Flags: uint64(attr.flags),
	}
	av, err := d.OpenAV(a)
	if err != nil {
		return result(err)
	}
	av.SetFID(uintptr(self))
	if out.handle, err = enter(av); err != nil {
		return result(err)
	}
	attr._type = C.enum_fi_av_type(a.Type)
	storeAddr(unsafe.Pointer(&attr.map_addr), uint64(a.MapAddr))
	return 0
}

//export weftGoAVBind
func weftGoAVBind(av, queue, flags C.uint64_t) (rc C.int) {
	defer guard("fi_av_bind", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return result(err)
	}
	return result(a.BindEQ(q, uint64(flags)))
}

// insertion describes where the results of an insert go. With FI_SYNC_ERR the
// context is an array for the errnos.
func insertion(addrs *C.fi_addr_t, count C.size_t, flags C.uint64_t, context unsafe.Pointer) *provider.Insertion {
	in := &provider.Insertion{Flags: uint64(flags), Addrs: view[fi.Addr](unsafe.Pointer(addrs), count)}
	if in.Flags&fi.SyncErr != 0 {
		if in.Errs = view[int32](context, count); context != nil && in.Errs == nil {
			in.Errs = []int32{} // room for the results of no addresses
		}
	} else {
		in.Context = uint64(uintptr(context))
	}
	return in
}

// inserted is what C gets for an insert: the number of addresses or an error.
func inserted(n int, err error) C.int {
	if err != nil {
		return result(err)
	}
	return C.int(n)
}

// Inserts return the number of addresses.
//
//export weftGoAVInsert
func weftGoAVInsert(av C.uint64_t, addr unsafe.Pointer, count C.size_t, addrs *C.fi_addr_t, flags C.uint64_t,
	context unsafe.Pointer) (rc C.int) {
	defer guard("fi_av_insert", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	if addr == nil && count != 0 || count > 1<<31-1 {
		return result(fi.EINVAL)
	}
	in := insertion(addrs, count, flags, context)
	if count == 0 {
		return inserted(a.Insert(nil, 0, in))
	}
	if a.Format() == fi.AddrStr {
		return inserted(a.InsertNames(stringsAt(addr, count), in))
	}
	// The family of the first address gives the size of all.
	size := C.size_t(a.AddrSize(*(*uint16)(addr)))
	return inserted(a.Insert(view[byte](addr, count*size), int(count), in))
}

// stringsAt returns count strings of an application, at least one: an array of pointers, as
// fi_av_insert(3) has it, or the strings themselves one after the other, which is what
// libfabric's shm takes and what programs that treat names as bytes give. The beginning of
// weft's strings is no pointer of any process: bits 47 and up of an address are alike.
func stringsAt(addr unsafe.Pointer, count C.size_t) []string {
	list := make([]string, count)
	if string(view[byte](addr, 8)) == "fi_socka" {
		for i := range list {
			list[i] = text((*C.char)(addr))
			addr = unsafe.Add(addr, len(list[i])+1)
		}
		return list
	}
	for i, s := range view[*C.char](addr, count) {
		list[i] = text(s)
	}
	return list
}

//export weftGoAVInsertSvc
func weftGoAVInsertSvc(av C.uint64_t, node, service *C.char, addrs *C.fi_addr_t, flags C.uint64_t,
	context unsafe.Pointer) (rc C.int) {
	defer guard("fi_av_insertsvc", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	return inserted(a.InsertSvc(text(node), text(service), insertion(addrs, 1, flags, context)))
}

//export weftGoAVInsertSym
func weftGoAVInsertSym(vector C.uint64_t, node *C.char, nodes C.size_t, service *C.char, services C.size_t,
	addrs *C.fi_addr_t, flags C.uint64_t, context unsafe.Pointer) (rc C.int) {
	defer guard("fi_av_insertsym", &rc)
	a, err := objectOf[*provider.AV](vector)
	if err != nil {
		return result(err)
	}
	n, err := provider.SymCount(uint64(nodes), uint64(services))
	if err != nil {
		return result(err)
	}
	return inserted(a.InsertSym(text(node), uint64(nodes), text(service), uint64(services),
		insertion(addrs, C.size_t(n), flags, context)))
}

//export weftGoAVRemove
func weftGoAVRemove(av C.uint64_t, addrs *C.fi_addr_t, count C.size_t, flags C.uint64_t) (rc C.int) {
	defer guard("fi_av_remove", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	if addrs == nil && count != 0 {
		return result(fi.EINVAL)
	}
	return result(a.Remove(view[fi.Addr](unsafe.Pointer(addrs), count), uint64(flags)))
}

// weftGoAVLookup writes as much of an address as fits and stores the bytes of all
// of it; that it was cut is no error (fi_av(3)).
//
//export weftGoAVLookup
func weftGoAVLookup(av C.uint64_t, addr C.fi_addr_t, dst unsafe.Pointer, size *C.size_t) (rc C.int) {
	defer guard("fi_av_lookup", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	n, err := a.Lookup(fi.Addr(addr), view[byte](dst, *size))
	if err != nil {
		return result(err)
	}
	*size = C.size_t(n)
	return 0
}

// weftGoAVStrAddr writes the text of an address, cut to *size bytes with the
// terminating NUL byte, and stores the bytes that all of it takes.
//
//export weftGoAVStrAddr
func weftGoAVStrAddr(av C.uint64_t, addr unsafe.Pointer, buf *C.char, size *C.size_t) (rc C.int) {
	defer guard("fi_av_straddr", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	var raw []byte
	if a.Format() == fi.AddrStr {
		raw = append([]byte(C.GoString((*C.char)(addr))), 0)
	} else {
		raw = view[byte](addr, C.size_t(a.AddrSize(*(*uint16)(addr))))
	}
	s := append([]byte(a.StrAddr(raw)), 0)
	if room := *size; room != 0 && int(room) < len(s) {
		view[byte](unsafe.Pointer(buf), room)[copy(view[byte](unsafe.Pointer(buf), room-1), s)] = 0
		*size = C.size_t(len(s))
		return 0
	}
	_ = put(s, unsafe.Pointer(buf), size) // it fits, or nothing is wanted but the size
	return 0
}

//export weftGoAVSetUserID
func weftGoAVSetUserID(av C.uint64_t, addr, id C.fi_addr_t, flags C.uint64_t) (rc C.int) {
	defer guard("fi_av_set_user_id", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	return result(a.SetUserID(fi.Addr(addr), fi.Addr(id), uint64(flags)))
}

//export weftGoAVInsertAuthKey
func weftGoAVInsertAuthKey(
	av C.uint64_t, key unsafe.Pointer, size C.size_t, addr *C.fi_addr_t, flags C.uint64_t,
) (rc C.int) {
	defer guard("fi_av_insert_auth_key", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	if size > 1<<31-1 {
		return result(fi.EINVAL)
	}
	handle, err := a.InsertAuthKey(view[byte](key, size), uint64(flags))
	*addr = C.fi_addr_t(handle)
	return result(err)
}

// weftGoAVLookupAuthKey writes as much of a key as fits and stores the bytes of all
// of it; that it was cut is no error (fi_av(3)).
//
//export weftGoAVLookupAuthKey
func weftGoAVLookupAuthKey(av C.uint64_t, addr C.fi_addr_t, key unsafe.Pointer, size *C.size_t) (rc C.int) {
	defer guard("fi_av_lookup_auth_key", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	n, err := a.LookupAuthKey(fi.Addr(addr), view[byte](key, *size))
	if err != nil {
		return result(err)
	}
	*size = C.size_t(n)
	return 0
}
