package main

// #include "goapi.h"
// #include "hotpath.h"
// #include "rma.h"
import "C"

import (
	"slices"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/atomics"
)

func init() {
	atomics.SetExtended(func(d fi.Datatype, op fi.Op, cur, operand, compare unsafe.Pointer) {
		C.weft_long_double(C.int(d), C.int(op), cur, operand, compare)
	})
}

// Kind is WEFT_POST_*.
//
//export weftGoRMA
func weftGoRMA(ep C.uint64_t, msg *C.struct_fi_msg_rma, flags C.uint64_t, kind C.uint32_t) (rc C.int64_t) {
	defer guard("read or write", &rc)
	e, ok := handles.get(uint64(ep)).(*provider.Endpoint)
	if !ok {
		return C.int64_t(fi.EINVAL.Code())
	}
	args, err := rmaArgs(msg, flags, kind)
	if err == nil && kind&C.WEFT_POST_DEVICE != 0 {
		args.IOV = slices.Clone(args.IOV)
		err = translate(e.Domain(), args.IOV, msg.desc)
	}
	if err == nil {
		args.On, err = condition(flags, C.uint64_t(args.Context))
	}
	if err != nil {
		return C.int64_t(result(err))
	}
	return C.int64_t(result(e.RMA(&args)))
}

// rmaArgs turns an application's structure into Go's. The vectors are looked at during the call only.
func rmaArgs(msg *C.struct_fi_msg_rma, flags C.uint64_t, kind C.uint32_t) (provider.RMAArgs, error) {
	if msg.msg_iov == nil && msg.iov_count != 0 || msg.rma_iov == nil && msg.rma_iov_count != 0 {
		return provider.RMAArgs{}, fi.EINVAL
	}
	return provider.RMAArgs{
		IOV:     view[fi.IOVec](unsafe.Pointer(msg.msg_iov), msg.iov_count),
		Remote:  view[fi.RMAIOVec](unsafe.Pointer(msg.rma_iov), msg.rma_iov_count),
		Dest:    fi.Addr(msg.addr),
		Data:    uint64(msg.data),
		Flags:   uint64(flags),
		Context: uint64(uintptr(msg.context)),
		Read:    kind&C.WEFT_POST_READ != 0,
		HasData: kind&C.WEFT_POST_DATA != 0,
		Inject:  kind&C.WEFT_POST_INJECT != 0,
	}, nil
}

// atomicRoom is struct weft_atomic_room: the vectors of an atomic operation, in bytes.
type atomicRoom struct {
	operand, compare, result [C.WEFT_ATOMIC_IOV]fi.IOVec
	remote                   [C.WEFT_ATOMIC_IOV]fi.RMAIOVec
}

const _ = -(uint(unsafe.Sizeof(atomicRoom{})) ^ uint(C.sizeof_struct_weft_atomic_room)) // does not compile if they differ

// Kind is WEFT_POST_*.
//
//export weftGoAtomic
func weftGoAtomic(ep C.uint64_t, msg *C.struct_fi_msg_atomic, fetch *C.struct_fi_msg_fetch, compare *C.struct_fi_msg_compare,
	flags C.uint64_t, kind C.uint32_t, room *C.struct_weft_atomic_room) (rc C.int64_t) {
	defer guard("atomic", &rc)
	e, ok := handles.get(uint64(ep)).(*provider.Endpoint)
	if !ok {
		return C.int64_t(fi.EINVAL.Code())
	}
	args, err := atomicArgs((*atomicRoom)(unsafe.Pointer(room)), msg, fetch, compare, flags)
	if err == nil && kind&C.WEFT_POST_DEVICE != 0 {
		err = translateAtomic(e.Domain(), &args, msg, fetch, compare)
	}
	if err == nil {
		args.On, err = condition(flags, C.uint64_t(args.Context))
	}
	if err != nil {
		return C.int64_t(result(err))
	}
	args.Inject = kind&C.WEFT_POST_INJECT != 0
	return C.int64_t(result(e.Atomic(&args)))
}

// atomicArgs turns an application's structures into Go's; fetch and compare are nil for kinds without. Errors:
// fi.EOPNOTSUPP for an unknown datatype, fi.EINVAL for vectors that are NULL or too long.
func atomicArgs(room *atomicRoom, msg *C.struct_fi_msg_atomic, fetch *C.struct_fi_msg_fetch, compare *C.struct_fi_msg_compare,
	flags C.uint64_t) (provider.AtomicArgs, error) {
	a := provider.AtomicArgs{
		Kind: atomics.Base, Op: fi.Op(msg.op), Datatype: fi.Datatype(msg.datatype), Dest: fi.Addr(msg.addr),
		Flags: uint64(flags), Context: uint64(uintptr(msg.context)),
	}
	size := uint64(a.Datatype.Size())
	if size == 0 {
		return a, fi.EOPNOTSUPP
	}
	var ok bool
	if a.Remote, ok = remoteBytes(&room.remote, msg.rma_iov, msg.rma_iov_count, size); !ok {
		return a, fi.EINVAL
	}
	if a.Operand, ok = bytesOf(&room.operand, msg.msg_iov, msg.iov_count, size); !ok {
		return a, fi.EINVAL
	}
	if a.Op == fi.OpRead {
		a.Operand = nil // its buffer is ignored
	}
	if fetch != nil {
		a.Kind = atomics.Fetch
		if a.Result, ok = bytesOf(&room.result, fetch.msg_iov, fetch.iov_count, size); !ok {
			return a, fi.EINVAL
		}
	}
	if compare != nil {
		a.Kind = atomics.Compare
		if a.Compare, ok = bytesOf(&room.compare, compare.msg_iov, compare.iov_count, size); !ok {
			return a, fi.EINVAL
		}
	}
	return a, nil
}

// mostElements is more than any operation has, and no overflow in bytes.
const mostElements = 1<<58 - 1

// bytesOf stores a vector of elements as one of bytes; false for one that is NULL or too long.
func bytesOf(to *[C.WEFT_ATOMIC_IOV]fi.IOVec, from *C.struct_fi_ioc, n C.size_t, size uint64) ([]fi.IOVec, bool) {
	if n > C.size_t(len(to)) || from == nil && n != 0 {
		return nil, false
	}
	for i, v := range view[C.struct_fi_ioc](unsafe.Pointer(from), n) {
		if v.count > mostElements {
			return nil, false
		}
		to[i] = fi.IOVec{Base: uintptr(v.addr), Len: uint64(v.count) * size}
	}
	return to[:n], true
}

// remoteBytes is bytesOf for the remote side.
func remoteBytes(to *[C.WEFT_ATOMIC_IOV]fi.RMAIOVec, from *C.struct_fi_rma_ioc, n C.size_t, size uint64) ([]fi.RMAIOVec, bool) {
	if n > C.size_t(len(to)) || from == nil && n != 0 {
		return nil, false
	}
	for i, v := range view[C.struct_fi_rma_ioc](unsafe.Pointer(from), n) {
		if v.count > mostElements {
			return nil, false
		}
		to[i] = fi.RMAIOVec{Addr: uint64(v.addr), Len: uint64(v.count) * size, Key: uint64(v.key)}
	}
	return to[:n], true
}

// translateAtomic makes addresses of device memory those by which Go knows it.
func translateAtomic(d *provider.Domain, a *provider.AtomicArgs, msg *C.struct_fi_msg_atomic, fetch *C.struct_fi_msg_fetch,
	compare *C.struct_fi_msg_compare) error {
	err := translate(d, a.Operand, msg.desc)
	if err == nil && compare != nil {
		err = translate(d, a.Compare, compare.desc)
	}
	if err == nil && fetch != nil {
		err = translate(d, a.Result, fetch.desc)
	}
	return err
}

// Count may be NULL.
//
//export weftGoAtomicCount
func weftGoAtomicCount(kind C.uint32_t, datatype, op C.int, count *C.size_t) (rc C.int) {
	defer guard("fi_atomicvalid", &rc)
	n, err := atomicCount(atomics.Kind(kind), fi.Datatype(datatype), fi.Op(op))
	if err == nil && count != nil {
		*count = n
	}
	return result(err)
}

// atomicCount returns the most elements of an operation, fi.EOPNOTSUPP for those that there are not.
func atomicCount(k atomics.Kind, d fi.Datatype, op fi.Op) (C.size_t, error) {
	if !atomics.Valid(k, d, op) {
		return 0, fi.EOPNOTSUPP
	}
	return C.size_t(provider.AtomicCount(k, d)), nil
}

// There are no tagged atomics.
//
//export weftGoQueryAtomic
func weftGoQueryAtomic(_ C.uint64_t, datatype, op C.int, attr *C.struct_fi_atomic_attr, flags C.uint64_t) (rc C.int) {
	defer guard("fi_query_atomic", &rc)
	kind := atomics.Base
	switch {
	case flags&^(C.FI_FETCH_ATOMIC|C.FI_COMPARE_ATOMIC|C.FI_TAGGED) != 0:
		return result(fi.EBADFLAGS)
	case flags&C.FI_TAGGED != 0:
		return result(fi.EOPNOTSUPP)
	case flags == C.FI_FETCH_ATOMIC|C.FI_COMPARE_ATOMIC:
		return result(fi.EBADFLAGS)
	case flags == C.FI_FETCH_ATOMIC:
		kind = atomics.Fetch
	case flags == C.FI_COMPARE_ATOMIC:
		kind = atomics.Compare
	}
	n, err := atomicCount(kind, fi.Datatype(datatype), fi.Op(op))
	if err == nil && attr != nil {
		attr.count, attr.size = n, C.size_t(fi.Datatype(datatype).Size())
	}
	return result(err)
}
