package main

// #include "longdouble.h"
// #include "rma.h"
import "C"

import (
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

//export weftGoRMA
func weftGoRMA(ep C.uint64_t, a *C.struct_weft_rma_args) (rc C.int64_t) {
	defer guard("read or write", &rc)
	e, ok := handles.get(uint64(ep)).(*provider.Endpoint)
	if !ok {
		return C.int64_t(fi.EINVAL.Code())
	}
	on, err := condition(a.flags, a.context)
	if err != nil {
		return C.int64_t(result(err))
	}
	args := rmaArgs(a, on)
	return C.int64_t(result(e.RMA(&args)))
}

// A peer may have gone while a fetch was posted to it.
//
//export weftGoFetchLost
func weftGoFetchLost(ep C.uint64_t) {
	defer guardVoid("lost fetch")
	if e, ok := handles.get(uint64(ep)).(*provider.Endpoint); ok {
		e.FetchLost()
	}
}

//export weftGoAtomic
func weftGoAtomic(ep C.uint64_t, a *C.struct_weft_atomic_args) (rc C.int64_t) {
	defer guard("atomic", &rc)
	e, ok := handles.get(uint64(ep)).(*provider.Endpoint)
	if !ok {
		return C.int64_t(fi.EINVAL.Code())
	}
	on, err := condition(a.flags, a.context)
	if err != nil {
		return C.int64_t(result(err))
	}
	args := atomicArgs(a, on)
	return C.int64_t(result(e.Atomic(&args)))
}

//export weftGoAtomicCount
func weftGoAtomicCount(kind C.uint32_t, datatype, op C.int, count *C.size_t) (rc C.int) {
	defer guard("fi_atomicvalid", &rc)
	n, err := atomicCount(atomics.Kind(kind), fi.Datatype(datatype), fi.Op(op))
	if err == nil {
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
