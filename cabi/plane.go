package main

// #include <stdbool.h>
// #include "plane.h"
// bool weft_plane_works(uintptr_t enter, uintptr_t probe, const uintptr_t args[4], uintptr_t want);
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

// plane are the functions of the data plane.
var plane = [hot.PlaneFunctions]direct.Func{
	hot.PlaneRead:      dataplane.Read,
	hot.PlaneSread:     dataplane.SRead,
	hot.PlaneProgress:  dataplane.Progress,
	hot.PlaneDrive:     dataplane.Drive,
	hot.PlaneRecv:      dataplane.Recv,
	hot.PlaneSend:      dataplane.Send,
	hot.PlaneDatagram:  dataplane.Datagram,
	hot.PlaneRMA:       dataplane.RMA,
	hot.PlaneAtomic:    dataplane.Atomic,
	hot.PlaneNote:      dataplane.Note,
	hot.PlaneTake:      dataplane.Take,
	hot.PlaneEnroll:    dataplane.Enroll,
	hot.PlaneList:      dataplane.PostList,
	hot.PlaneReceive:   dataplane.Receive,
	hot.PlaneReadError: dataplane.ReadError,
	hot.PlaneTry:       dataplane.Try,
}

// weftGoPlane calls a function of the data plane on the route that enters the runtime.
//
//export weftGoPlane
func weftGoPlane(function, a, b, c, d C.uintptr_t) C.uintptr_t {
	defer guardVoid("data plane")
	return C.uintptr_t(plane[function](uintptr(a), uintptr(b), uintptr(c), uintptr(d)))
}

// probe is what the self-test calls, which a planted fault replaces.
var probe = direct.Probe

// choosePlane has C call the data plane without the runtime where it can. The first fabric's opening decides.
var choosePlane = sync.OnceFunc(func() {
	for i := range plane {
		C.weft_plane.entries[i] = C.uintptr_t(i)
	}
	if !provider.Direct() {
		log.Infof(log.Core, "the data plane is called through the runtime: FI_WEFT_DIRECT says so")
		return
	}
	function, four, want := probe()
	var args [4]C.uintptr_t
	for i, a := range four {
		args[i] = C.uintptr_t(a)
	}
	enter := direct.Trampoline()
	if !bool(C.weft_plane_works(C.uintptr_t(enter), C.uintptr_t(function), &args[0], C.uintptr_t(want))) {
		log.Warnf(log.Core, "the data plane is called through the runtime: the self-test of direct calls failed")
		return
	}
	for i, f := range plane {
		C.weft_plane.entries[i] = C.uintptr_t(direct.Entry(f))
	}
	storeAddr(unsafe.Pointer(&C.weft_plane.enter), uint64(enter))
	provider.SetPlane()
})
