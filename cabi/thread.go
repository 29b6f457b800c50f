package main

// #include "goapi.h"
// #include "thread.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// The context function is called by the thread that calls into Go, before
// anything of Go runs there. Package runtime has it for tracebacks.
func init() {
	runtime.SetCgoTraceback(0, nil, unsafe.Pointer(C.weft_thread_enter), nil)
}

// handlerRoom is the room on a goroutine's stack, in bytes, for a signal
// handler of the application that does not ask for a stack of its own.
const handlerRoom = 64 << 10

//export weftGoEnterThread
func weftGoEnterThread(threads C.uint) {
	growStack(false)
	places.enter(&places.callers, int(threads))
}

// growStack makes the stack large enough for its frame, which happens at its
// entry whether or not the frame is used.
//
//go:noinline
func growStack(use bool) byte {
	if !use {
		return 0
	}
	var room [handlerRoom]byte
	return room[growth(&room)]
}

//go:noinline
func growth(room *[handlerRoom]byte) int { return int(room[0]) }
