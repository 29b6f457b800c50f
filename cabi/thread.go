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
// handler of the application: in frames, because the compiler puts no large
// variable on the stack.
const (
	handlerRoom   = 256 << 10
	handlerFrame  = 64 << 10
	handlerFrames = handlerRoom / handlerFrame
)

// Returns when the Go runtime has started.
//
//export weftGoEnterThread
func weftGoEnterThread(threads C.uint) {
	growStack(handlerFrames, false)
	places.enter(&places.callers, int(threads))
}

// growStack makes the stack large enough for a number of its frames, which happens at its
// entry whether or not the frame is used.
//
//go:noinline
func growStack(frames int, use bool) byte {
	if frames > 1 {
		return growStack(frames-1, use)
	}
	if !use {
		return 0
	}
	var room [handlerFrame]byte
	return room[growth(&room)]
}

//go:noinline
func growth(room *[handlerFrame]byte) int { return int(room[0]) }
