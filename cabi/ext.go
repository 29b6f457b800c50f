package main

// #include <stdlib.h>
// #include "token.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
)

// statsCounters enters the table of counters in what fi_open_ops gives for them, once; it is never freed. false without
// memory.
var statsCounters = sync.OnceValue(func() bool {
	n := countedByC()
	list := (*C.struct_weft_counter)(C.calloc(C.size_t(n), C.sizeof_struct_weft_counter))
	if list == nil {
		return false
	}
	for i, c := range stats.Table()[:n] {
		out := &unsafe.Slice(list, n)[i]
		out.name, out.unit, out.help = C.CString(c.Name), C.CString(c.Unit), C.CString(c.Help)
		out.kind = C.enum_weft_counter_kind(c.Kind)
		if c.Level() == stats.Rx {
			out.level = C.WEFT_COUNTER_ENDPOINT
		}
	}
	C.weft_stats_ops.count, C.weft_stats_ops.counters = C.size_t(n), list
	return true
})

// countedByC is the number of counters that are not of single peers, which end
// the table.
func countedByC() int {
	for i := range stats.Table() {
		if stats.Table()[i].Level() == stats.Peer {
			return i
		}
	}
	return len(stats.Table())
}

// counted returns the handle of which an object has the counters, 0 for those of the process. false: it has none.
func counted(fid *C.struct_fid) (C.uint64_t, bool) {
	h := C.weft_handle_of(fid)
	if h == 0 {
		return 0, false
	}
	switch fid.fclass {
	case C.FI_CLASS_FABRIC, C.FI_CLASS_DOMAIN:
		return 0, true
	case C.FI_CLASS_EP, C.FI_CLASS_TX_CTX, C.FI_CLASS_RX_CTX:
		return h, true
	}
	return 0, false
}

// The operations of that name of one of weft's objects.
//
//export weftGoOpsOpen
func weftGoOpsOpen(fid *C.struct_fid, name *C.char, flags C.uint64_t, ops *unsafe.Pointer) (rc C.int) {
	defer guard("fi_open_ops", &rc)
	has := false
	var found unsafe.Pointer
	switch text(name) {
	case C.WEFT_STATS_OPS:
		_, has = counted(fid)
		found = unsafe.Pointer(&C.weft_stats_ops)
	case C.WEFT_COLL_OPS:
		has = fid.fclass == C.FI_CLASS_EP
		found = unsafe.Pointer(&C.weft_coll_ops)
	case C.WEFT_TOKEN_OPS:
		has = fid.fclass == C.FI_CLASS_MR || fid.fclass == C.FI_CLASS_EP || fid.fclass == C.FI_CLASS_TX_CTX ||
			fid.fclass == C.FI_CLASS_RX_CTX
		found = unsafe.Pointer(&C.weft_token_table)
	}
	switch {
	case !has:
		return result(fi.ENOSYS)
	case flags != 0:
		return result(fi.EBADFLAGS)
	case !statsCounters():
		return result(fi.ENOMEM)
	}
	*ops = found
	return 0
}

// The values of count counters from first on, which an object has.
//
//export weftGoStatsRead
func weftGoStatsRead(fid *C.struct_fid, first, count C.size_t, values *C.uint64_t) (rc C.int) {
	defer guard("counters", &rc)
	all := make([]uint64, countedByC())
	n := C.size_t(len(all))
	handle, ok := counted(fid)
	if !ok || first > n || count > n-first {
		return result(fi.EINVAL)
	}
	if err := counterValues(handle, all); err != nil {
		return result(err)
	}
	copy(view[uint64](unsafe.Pointer(values), count), all[first:])
	return 0
}

// counterValues stores the values of an endpoint, or of the process for handle 0.
func counterValues(handle C.uint64_t, all []uint64) error {
	if handle == 0 {
		stats.ProcessValues(all)
		return nil
	}
	e, err := objectOf[interface{ Counters(dst []uint64) error }](handle)
	if err != nil {
		return err
	}
	return e.Counters(all)
}
