package main

// #include "goapi.h"
import "C"

import (
	"slices"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
)

// fi_profile(3), which came with libfabric 2.0: an endpoint's counters as variables. The one that libfabric names is
// FI_VAR_UNEXP_MSG_CNT, the others are weft's own, by the names of docs/counters.md.

const (
	varUnexpected = 0       // FI_VAR_UNEXP_MSG_CNT
	varOwn        = 1 << 31 // with the index of a counter: a variable of the provider's
)

var unexpectedName = C.CString("pvar_unexp_msg_cnt")

// endpointProfile is an endpoint's. One thread at a time uses it.
type endpointProfile struct {
	ep     C.uint64_t // a closed endpoint's handle is not given out again
	kept   bool       // between start_reads and end_reads
	err    error      // of the read by start_reads
	values []uint64
}

// Close ends the use of a profile.
func (p *endpointProfile) Close() error { return nil }

func (p *endpointProfile) read() error { return counterValues(p.ep, p.values) }

// counterOf returns the counter that a variable shows, -1 if there is no such variable.
func (p *endpointProfile) counterOf(id C.uint32_t) int {
	if id == varUnexpected {
		return slices.IndexFunc(stats.Table(), func(c stats.Counter) bool { return c.Name == "unexpected" })
	}
	if i := int(id &^ varOwn); id&varOwn != 0 && i < len(p.values) && stats.Table()[i].Level() == stats.Rx {
		return i
	}
	return -1
}

func (p *endpointProfile) describe(id C.uint32_t, d *C.struct_weft_profile_desc) {
	c := unsafe.Slice(C.weft_stats_ops.counters, len(p.values))[p.counterOf(id)]
	*d = C.struct_weft_profile_desc{id: id, datatype: C.FI_UINT64, size: 8, name: c.name, desc: c.help}
	if id == varUnexpected {
		d.name = unexpectedName
	}
}

// The profile of an endpoint or of a context of a scalable one.
//
//export weftGoProfileOpen
func weftGoProfileOpen(fid *C.struct_fid, flags C.uint64_t, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_profile_open", &rc)
	ep, ok := counted(fid)
	switch {
	case !ok || ep == 0:
		return result(fi.ENOSYS) // a domain has no variables of its own
	case flags != 0:
		return result(fi.EBADFLAGS)
	case !statsCounters():
		return result(fi.ENOMEM)
	}
	var err error
	out.handle, err = enter(&endpointProfile{ep: ep, values: make([]uint64, countedByC())})
	return result(err)
}

// Returns how many are described, and stores how many there are.
//
//export weftGoProfileVars
func weftGoProfileVars(profile C.uint64_t, list unsafe.Pointer, count *C.size_t) (rc C.int64_t) {
	defer guard("fi_profile_query_vars", &rc)
	p, err := objectOf[*endpointProfile](profile)
	if err != nil {
		return C.int64_t(result(err))
	}
	ids := []C.uint32_t{varUnexpected}
	for i := range p.values {
		if id := C.uint32_t(varOwn | i); p.counterOf(id) >= 0 {
			ids = append(ids, id)
		}
	}
	to := view[C.struct_weft_profile_desc](list, min(*count, C.size_t(len(ids))))
	for i := range to {
		p.describe(ids[i], &to[i])
	}
	*count = C.size_t(len(ids))
	return C.int64_t(len(to))
}

// There are none.
//
//export weftGoProfileEvents
func weftGoProfileEvents(profile C.uint64_t, list unsafe.Pointer, count *C.size_t) (rc C.int64_t) {
	defer guard("fi_profile_query_events", &rc)
	*count = 0
	return 0
}

// Returns the bytes of the value.
//
//export weftGoProfileRead
func weftGoProfileRead(profile C.uint64_t, id C.uint32_t, data unsafe.Pointer, size *C.size_t) (rc C.int64_t) {
	defer guard("fi_profile_read_var", &rc)
	p, err := objectOf[*endpointProfile](profile)
	if err != nil {
		return C.int64_t(result(err))
	}
	i := p.counterOf(id)
	switch {
	case i < 0:
		return C.int64_t(result(fi.EINVAL))
	case *size < 8:
		return C.int64_t(result(fi.ETOOSMALL))
	case !p.kept:
		p.err = p.read()
	}
	if p.err != nil {
		return C.int64_t(result(p.err))
	}
	*(*uint64)(data), *size = p.values[i], 8
	return 8
}

//export weftGoProfileStart
func weftGoProfileStart(profile, _ C.uint64_t) {
	defer guardVoid("fi_profile_start_reads")
	if p, err := objectOf[*endpointProfile](profile); err == nil {
		p.err, p.kept = p.read(), true
	}
}

//export weftGoProfileEnd
func weftGoProfileEnd(profile, _ C.uint64_t) {
	defer guardVoid("fi_profile_end_reads")
	if p, err := objectOf[*endpointProfile](profile); err == nil {
		p.kept = false
	}
}
