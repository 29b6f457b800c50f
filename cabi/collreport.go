package main

// #include "goapi.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoCollReport
func weftGoCollReport(ep C.uint64_t, to *C.struct_weft_coll_report) (rc C.int) {
	defer guard("report", &rc)
	return result(collReport(ep, to))
}

func collReport(ep C.uint64_t, to *C.struct_weft_coll_report) error {
	if to.size < C.sizeof_struct_weft_coll_report {
		log.Warnf(log.EPCtrl, "report: a structure of %d bytes, expected %d", uint64(to.size),
			uint64(C.sizeof_struct_weft_coll_report))
		return fi.EINVAL
	}
	e, err := objectOf[member](ep)
	if err != nil {
		return err
	}
	g, err := e.GroupOf(fi.Addr(to.coll_addr))
	if err != nil {
		return err
	}
	r := g.Report()
	if r == (exchange.Report{}) {
		return fi.ENODATA
	}
	if to.peers != nil {
		if r, err = peerReports(g, to); err != nil {
			return err
		}
	}
	to.took, to.bound = nanoseconds(r.Took), nanoseconds(r.Bound)
	to.out, to.in, to.received = C.uint64_t(r.Out), C.uint64_t(r.In), C.uint64_t(r.Received)
	to.chunks, to.forced, to.deferrals = C.uint64_t(r.Chunks), C.uint64_t(r.Forced), C.uint64_t(r.Deferrals)
	to.credits, to.invited = C.uint64_t(r.Credits), C.uint64_t(r.Invited)
	to.relayed, to.carried, to.again = C.uint64_t(r.Relayed), C.uint64_t(r.Carried), C.uint64_t(r.Again)
	to.forged, to.most = C.uint64_t(r.Forged), C.uint64_t(r.Most)
	to.out_rate, to.in_rate = C.uint64_t(r.OutRate), C.uint64_t(r.InRate)
	return nil
}

// peerReports fills the array of a report, and returns the report of the same operation.
func peerReports(g *provider.Group, to *C.struct_weft_coll_report) (exchange.Report, error) {
	r, all, err := g.PeerReports()
	if err != nil {
		return r, err
	}
	if to.peer_size < C.sizeof_struct_weft_coll_peer || to.peer_size%8 != 0 || uint64(to.count) < uint64(len(all)) {
		log.Warnf(log.EPCtrl, "report: room for %d ranks of %d bytes, expected %d of %d", uint64(to.count),
			uint64(to.peer_size), len(all), uint64(C.sizeof_struct_weft_coll_peer))
		return r, fi.EINVAL
	}
	for i := range all {
		a := &all[i]
		p := (*C.struct_weft_coll_peer)(unsafe.Add(unsafe.Pointer(to.peers), uintptr(i)*uintptr(to.peer_size)))
		p.first, p.last, p.received = nanoseconds(a.First), nanoseconds(a.Last), nanoseconds(a.Received)
		p.chunks, p.deferrals, p.began = C.uint64_t(a.Chunks), C.uint64_t(a.Deferrals), C.uint64_t(a.Began)
		p.queue, p.rate = nanoseconds(a.Queue), C.uint64_t(a.Rate)
	}
	return r, nil
}

func nanoseconds(d time.Duration) C.uint64_t { return C.uint64_t(max(d, 0)) }

//export weftGoCollPath
func weftGoCollPath(ep, addr C.uint64_t, to *C.struct_weft_coll_path) (rc C.int) {
	defer guard("path", &rc)
	if to.size < C.sizeof_struct_weft_coll_path {
		log.Warnf(log.EPCtrl, "path: a structure of %d bytes, expected %d", uint64(to.size),
			uint64(C.sizeof_struct_weft_coll_path))
		return C.int(fi.EINVAL.Code())
	}
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	p, err := e.Path(fi.Addr(addr))
	if err != nil {
		return result(err)
	}
	to.base, to.smoothed, to.deviation = nanoseconds(p.Base), nanoseconds(p.Smoothed), nanoseconds(p.Deviation)
	to.queue, to.rate, to.age = nanoseconds(p.Queue), C.uint64_t(p.Rate), nanoseconds(p.Age)
	to.samples, to.lost = C.uint64_t(p.Samples), C.uint64_t(p.Lost)
	return 0
}

//export weftGoCollFail
func weftGoCollFail(ep, addr C.uint64_t, why C.int, context unsafe.Pointer) (rc C.int64_t) {
	defer guard("fail", &rc)
	e, err := objectOf[member](ep)
	if err != nil {
		return C.int64_t(result(err))
	}
	g, err := e.GroupOf(fi.Addr(addr))
	if err == nil {
		err = g.Fail(fi.Errno(why), uint64(uintptr(context)))
	}
	return C.int64_t(result(err))
}

//export weftGoCollReserve
func weftGoCollReserve(ep C.uint64_t, on C.int) (rc C.int) {
	defer guard("reserve", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	return result(provider.Reserve(e, on != 0))
}
