//go:build planted

package main

import (
	"os"
	"unsafe"

	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/hot"
)

// A library that is built with the tag planted has the fault that WEFT_TEST_PLANT names in its data plane: by it
// tests/clients/dataplane.sh and race.sh show that tests fail. A difference is there only where the data plane is
// called through the runtime, so that both routes come apart.

// fault is one of a function of the data plane: make returns what takes the place of the right one.
type fault struct {
	function int
	make     func(right direct.Func) direct.Func
}

// beforePost changes what a function is to post.
func beforePost(function int, change func(p *hot.Post)) fault {
	return fault{function, func(right direct.Func) direct.Func {
		return func(a, b, c, d uintptr) uintptr {
			if p := (*hot.Post)(*(*unsafe.Pointer)(unsafe.Pointer(&a))); p.Step == 0 {
				change(p)
			}
			return right(a, b, c, d)
		}
	}}
}

// differences are those between the routes, by what an application observes of them.
var differences = map[string]fault{
	"data":   beforePost(hot.PlaneSend, func(p *hot.Post) { p.Data++ }),
	"flags":  beforePost(hot.PlaneSend, func(p *hot.Post) { p.Kind &^= hot.PostData }),
	"length": beforePost(hot.PlaneSend, shorten),
	"target": beforePost(hot.PlaneRMA, func(p *hot.Post) { p.Data++ }),
	"error": {hot.PlaneReadError, func(right direct.Func) direct.Func {
		return func(queue, to, c, d uintptr) uintptr {
			code := right(queue, to, c, d)
			entry := (*[10]uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&to)))
			entry[5] ^= 1 // the tag
			return code
		}
	}},
}

// shorten takes a byte off a buffer of one piece.
func shorten(p *hot.Post) {
	if p.Kind&hot.PostVector == 0 && p.Len != 0 {
		p.Len--
	}
}

// racing has threads that post change a variable at once.
var (
	racing = beforePost(hot.PlaneSend, func(*hot.Post) { changed++ })

	changed int
)

// errorsInGo leaves errors to the runtime.
func errorsInGo(_, _, _, _ uintptr) uintptr { return hot.DeliveryGo }

// wrongProbe expects another result than its function has.
func wrongProbe() (function uintptr, args [4]uintptr, want uintptr) {
	function, args, want = direct.Probe()
	return function, args, want + 1
}

func init() {
	name := os.Getenv("WEFT_TEST_PLANT")
	if name == "errors_in_go" {
		plane[hot.PlaneReadError] = errorsInGo
	}
	if name == "self_test" {
		probe = wrongProbe
	}
	if name == "race" {
		plane[racing.function] = racing.make(plane[racing.function])
	}
	if f, ok := differences[name]; ok && os.Getenv("FI_WEFT_DIRECT") == "no" {
		plane[f.function] = f.make(plane[f.function])
	}
}
