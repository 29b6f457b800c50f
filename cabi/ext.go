package main

// #include <stdlib.h>
// #include "goapi.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider"
)

// statsOps is what fi_open_ops gives for the counters. It is made by the first
// call and never freed.
var statsOps = sync.OnceValue(func() *C.struct_weft_stats_ops {
	n := countedByC()
	ops := (*C.struct_weft_stats_ops)(C.calloc(1, C.sizeof_struct_weft_stats_ops))
	list := (*C.struct_weft_counter)(C.calloc(C.size_t(n), C.sizeof_struct_weft_counter))
	if ops == nil || list == nil {
		return nil
	}
	for i, c := range stats.Table()[:n] {
		out := &unsafe.Slice(list, n)[i]
		out.name, out.unit, out.help = C.CString(c.Name), C.CString(c.Unit), C.CString(c.Help)
		out.kind = C.enum_weft_counter_kind(c.Kind)
		if c.Level() == stats.Rx {
			out.level = C.WEFT_COUNTER_ENDPOINT
		}
	}
	ops.count, ops.counters = C.size_t(n), list
	C.weft_stats_calls(ops)
	return ops
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

// The counters' operations, NULL without memory; ext.c fills in the calls.
//
//export weftGoStatsOps
func weftGoStatsOps() (ops *C.struct_weft_stats_ops) {
	defer guardVoid("fi_open_ops")
	return statsOps()
}

// The values of count counters from first on, handle 0 being the process.
//
//export weftGoStatsRead
func weftGoStatsRead(handle C.uint64_t, first, count C.size_t, values *C.uint64_t) (rc C.int) {
	defer guard("counters", &rc)
	all := make([]uint64, countedByC())
	if handle == 0 {
		stats.ProcessValues(all)
	} else {
		e, err := objectOf[*provider.Endpoint](handle)
		if err == nil {
			err = e.Counters(all)
		}
		if err != nil {
			return result(err)
		}
	}
	copy(view[uint64](unsafe.Pointer(values), count), all[first:])
	return 0
}
