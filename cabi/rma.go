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
	args := provider.RMAArgs{
		IOV:     view[fi.IOVec](unsafe.Pointer(a.iov), C.size_t(a.count)),
		Remote:  view[fi.RMAIOVec](unsafe.Pointer(a.remote), C.size_t(a.remote_count)),
		Dest:    fi.Addr(a.dest),
		Data:    uint64(a.data),
		Flags:   uint64(a.flags),
		Context: uint64(a.context),
		Read:    a.kind&C.WEFT_RMA_READ != 0,
		HasData: a.kind&C.WEFT_RMA_DATA != 0,
		Inject:  a.kind&C.WEFT_RMA_INJECT != 0,
	}
	return C.int64_t(result(e.RMA(&args)))
}

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
	args := provider.AtomicArgs{
		Kind:     atomics.Kind(a.kind),
		Op:       fi.Op(a.op),
		Datatype: fi.Datatype(a.datatype),
		Operand:  view[fi.IOVec](unsafe.Pointer(&a.operand), C.size_t(a.operands)),
		Compare:  view[fi.IOVec](unsafe.Pointer(&a.compare), C.size_t(a.compares)),
		Result:   view[fi.IOVec](unsafe.Pointer(&a.result), C.size_t(a.results)),
		Remote:   view[fi.RMAIOVec](unsafe.Pointer(&a.remote), C.size_t(a.remotes)),
		Dest:     fi.Addr(a.dest),
		Flags:    uint64(a.flags),
		Context:  uint64(a.context),
		Inject:   a.inject != 0,
	}
	return C.int64_t(result(e.Atomic(&args)))
}

//export weftGoAtomicCount
func weftGoAtomicCount(kind C.uint32_t, datatype, op C.int, count *C.size_t) (rc C.int) {
	defer guard("fi_atomicvalid", &rc)
	k, d := atomics.Kind(kind), fi.Datatype(datatype)
	if !atomics.Valid(k, d, fi.Op(op)) {
		return result(fi.EOPNOTSUPP)
	}
	*count = C.size_t(provider.AtomicCount(k, d))
	return 0
}
