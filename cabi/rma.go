package main

// #include "goapi.h"
// #include "posting.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/atomics"
)

func init() {
	atomics.SetExtended(func(d fi.Datatype, op fi.Op, cur, operand, compare unsafe.Pointer) {
		C.weft_long_double(C.int(d), C.int(op), cur, operand, compare)
	})
}

// room is where the arguments of a call are while it lasts, and vectors that the application did not give as such.
type room struct {
	operand, compare, result [C.WEFT_IOV_LIMIT]fi.IOVec
	remote                   [C.WEFT_IOV_LIMIT]fi.RMAIOVec
	rma                      provider.RMAArgs
	atomic                   provider.AtomicArgs
}

var rooms = sync.Pool{New: func() any { return new(room) }}

func postRMA(e endpoint, p *C.struct_weft_post) error {
	to := rooms.Get().(*room)
	defer rooms.Put(to)
	var err error
	if to.rma, err = rmaArgs(e, to, p); err == nil {
		to.rma.On, err = condition(p.flags, p.context)
	}
	if err != nil {
		return err
	}
	return e.RMA(&to.rma)
}

// rmaArgs turns an application's arguments into Go's. The vectors are read during the call only.
func rmaArgs(e domained, to *room, p *C.struct_weft_post) (provider.RMAArgs, error) {
	iov, err := local(e, p)
	if err != nil {
		return provider.RMAArgs{}, err
	}
	remote := to.remote[:1]
	if p.kind&hot.PostRemote != 0 {
		if p.remote == nil && p.remotes != 0 {
			return provider.RMAArgs{}, fi.EINVAL
		}
		remote = view[fi.RMAIOVec](p.remote, C.size_t(p.remotes))
	} else {
		remote[0] = fi.RMAIOVec{Addr: uint64(p.header), Key: uint64(p.key)}
		for _, v := range iov {
			remote[0].Len += v.Len
		}
	}
	return provider.RMAArgs{
		IOV: iov, Remote: remote, Dest: fi.Addr(p.dest), Data: uint64(p.data), Flags: uint64(p.flags),
		Context: uint64(p.context),
		Read:    p.kind&hot.PostRead != 0, HasData: p.kind&hot.PostData != 0, Inject: p.kind&hot.PostInject != 0,
	}, nil
}

func postAtomic(e endpoint, p *C.struct_weft_post) error {
	to := rooms.Get().(*room)
	defer rooms.Put(to)
	var err error
	if to.atomic, err = atomicArgs(to, p); err == nil && p.kind&hot.PostDevice != 0 {
		err = translateAtomic(e.Domain(), &to.atomic, p)
	}
	if err == nil {
		to.atomic.On, err = condition(p.flags, p.context)
	}
	if err != nil {
		return err
	}
	return e.Atomic(&to.atomic)
}

// atomicArgs turns an application's arguments into Go's. Errors: fi.EOPNOTSUPP for an unknown datatype, fi.EINVAL for
// vectors that are NULL or too long.
func atomicArgs(to *room, p *C.struct_weft_post) (provider.AtomicArgs, error) {
	a := provider.AtomicArgs{
		Kind: atomics.Kind(p.atomic), Op: fi.Op(p.op), Datatype: fi.Datatype(p.datatype), Dest: fi.Addr(p.dest),
		Flags: uint64(p.flags), Context: uint64(p.context), Inject: p.kind&hot.PostInject != 0,
	}
	size := uint64(a.Datatype.Size())
	if size == 0 {
		return a, fi.EOPNOTSUPP
	}
	vector := p.kind&hot.PostVector != 0
	compares, results := uint64(p.len), uint64(p.len)
	if vector {
		compares, results = uint64(p.compares), uint64(p.results)
	}
	var ok bool
	if a.Operand, ok = bytesOf(&to.operand, p.buf, uint64(p.len), vector, size); !ok {
		return a, fi.EINVAL
	}
	measure := a.Operand
	if a.Kind != atomics.Base {
		if a.Result, ok = bytesOf(&to.result, p.result, results, vector, size); !ok {
			return a, fi.EINVAL
		}
	}
	switch a.Kind {
	case atomics.Fetch:
		measure = a.Result
	case atomics.Compare:
		if a.Compare, ok = bytesOf(&to.compare, p.compare, compares, vector, size); !ok {
			return a, fi.EINVAL
		}
	}
	if a.Remote, ok = remoteBytes(&to.remote, p, measure, size); !ok {
		return a, fi.EINVAL
	}
	if a.Op == fi.OpRead {
		a.Operand = nil // its buffer is ignored
	}
	return a, nil
}

// mostElements is more than any operation has, and no overflow in bytes.
const mostElements = 1<<58 - 1

// bytesOf stores a vector of n elements as one of bytes, or n elements at an address where it is no vector; false for a
// vector that is NULL or too long.
func bytesOf(
	to *[C.WEFT_IOV_LIMIT]fi.IOVec, from unsafe.Pointer, n uint64, vector bool, size uint64,
) ([]fi.IOVec, bool) {
	if !vector {
		to[0] = fi.IOVec{Base: uintptr(from), Len: n * size}
		return to[:1], n <= mostElements
	}
	if n > uint64(len(to)) || from == nil && n != 0 {
		return nil, false
	}
	for i, v := range view[C.struct_fi_ioc](from, C.size_t(n)) {
		if v.count > mostElements {
			return nil, false
		}
		to[i] = fi.IOVec{Base: uintptr(v.addr), Len: uint64(v.count) * size}
	}
	return to[:n], true
}

// remoteBytes is bytesOf for the remote side, which is as long as measure where it is no vector.
func remoteBytes(
	to *[C.WEFT_IOV_LIMIT]fi.RMAIOVec, p *C.struct_weft_post, measure []fi.IOVec, size uint64,
) ([]fi.RMAIOVec, bool) {
	if p.kind&hot.PostRemote == 0 {
		n := uint64(0)
		for _, v := range measure {
			n += v.Len / size
		}
		to[0] = fi.RMAIOVec{Addr: uint64(p.header), Len: n * size, Key: uint64(p.key)}
		return to[:1], n <= mostElements
	}
	if p.remotes > C.uint64_t(len(to)) || p.remote == nil && p.remotes != 0 {
		return nil, false
	}
	for i, v := range view[C.struct_fi_rma_ioc](p.remote, C.size_t(p.remotes)) {
		if v.count > mostElements {
			return nil, false
		}
		to[i] = fi.RMAIOVec{Addr: uint64(v.addr), Len: uint64(v.count) * size, Key: uint64(v.key)}
	}
	return to[:p.remotes], true
}

// translateAtomic makes addresses of device memory those by which Go knows it.
func translateAtomic(d *provider.Domain, a *provider.AtomicArgs, p *C.struct_weft_post) error {
	err := translate(d, a.Operand, p.desc)
	if err == nil && a.Kind == atomics.Compare {
		err = translate(d, a.Compare, p.compare_desc)
	}
	if err == nil && a.Kind != atomics.Base {
		err = translate(d, a.Result, p.result_desc)
	}
	return err
}

// Count may be NULL.
//
//export weftGoAtomicCount
func weftGoAtomicCount(ep C.uint64_t, kind C.uint32_t, datatype, op C.int, count *C.size_t) (rc C.int) {
	defer guard("fi_atomicvalid", &rc)
	e, err := objectOf[interface{ Domain() *provider.Domain }](ep)
	if err != nil {
		return result(err)
	}
	n, err := atomicCount(e.Domain(), atomics.Kind(kind), fi.Datatype(datatype), fi.Op(op))
	if err == nil && count != nil {
		*count = n
	}
	return result(err)
}

// atomicCount returns the most elements of an operation, fi.EOPNOTSUPP for those that there are not.
func atomicCount(d *provider.Domain, k atomics.Kind, t fi.Datatype, op fi.Op) (C.size_t, error) {
	n, err := d.AtomicCount(k, t, op)
	return C.size_t(n), err
}

// There are no tagged atomics.
//
//export weftGoQueryAtomic
func weftGoQueryAtomic(domain C.uint64_t, datatype, op C.int, attr *C.struct_fi_atomic_attr,
	flags C.uint64_t) (rc C.int) {
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
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	n, err := atomicCount(d, kind, fi.Datatype(datatype), fi.Op(op))
	if err == nil && attr != nil {
		attr.count, attr.size = n, C.size_t(fi.Datatype(datatype).Size())
	}
	return result(err)
}
