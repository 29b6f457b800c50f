package main

// #include <stdbool.h>
// #include "plane.h"
// struct weft_plane_probe {
//	uintptr_t enter;
//	uintptr_t entries[WEFT_PLANE_FUNCTIONS];
//	uintptr_t probe;
//	uintptr_t args[4];
//	uintptr_t want;
// };
// bool weft_plane_direct(const struct weft_plane_probe *p);
import "C"

import (
	"sync"

	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

// plane are the functions of the data plane, in the order of enum weft_plane_function.
var plane = [C.WEFT_PLANE_FUNCTIONS]direct.Func{
	dataplane.Read, dataplane.SRead, dataplane.Progress, dataplane.Drive, dataplane.Idle,
	dataplane.Send, dataplane.Write, dataplane.Copy, dataplane.Atomic, dataplane.Note, dataplane.Take,
}

// weftGoPlane calls a function of the data plane on the route that enters the runtime.
//
//export weftGoPlane
func weftGoPlane(function, a, b, c, d C.uintptr_t) C.uintptr_t {
	defer guardVoid("data plane")
	return C.uintptr_t(plane[function](uintptr(a), uintptr(b), uintptr(c), uintptr(d)))
}

// choosePlane has C call the data plane without the runtime where it can. The first fabric's opening decides.
var choosePlane = sync.OnceFunc(func() {
	if !provider.Direct() {
		log.Infof(log.Core, "the data plane is called through the runtime: FI_WEFT_DIRECT says so")
		return
	}
	p := C.struct_weft_plane_probe{enter: C.uintptr_t(direct.Trampoline())}
	for i, f := range plane {
		p.entries[i] = C.uintptr_t(direct.Entry(f))
	}
	probe, args, want := direct.Probe()
	p.probe, p.want = C.uintptr_t(probe), C.uintptr_t(want)
	for i, a := range args {
		p.args[i] = C.uintptr_t(a)
	}
	if !bool(C.weft_plane_direct(&p)) {
		log.Warnf(log.Core, "the data plane is called through the runtime: the self-test of direct calls failed")
		return
	}
	provider.SetPlane()
})
