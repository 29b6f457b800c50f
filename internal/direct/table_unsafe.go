package direct

import "unsafe"

// Func is a function that can be called directly: up to four words in, one out.
type Func func(a, b, c, d uintptr) uintptr

// Entry returns the address of a function's code, for the first argument of the trampoline. f must be a function
// declared at package level: one with captured variables would find none.
func Entry(f Func) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// Call calls the function whose entry point is in a word. It needs nothing of the runtime: callcheck, which follows no
// call through a register, allows it here, and is given the functions that are called so.
//
//go:noinline
func Call(entry *uintptr, a, b, c, d uintptr) uintptr {
	return (*(*Func)(unsafe.Pointer(&entry)))(a, b, c, d)
}

// Trampoline returns the address of the C function
//
//	uintptr_t trampoline(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
//
// that calls the Go function with that entry point; 0 on processors without one.
func Trampoline() uintptr { return trampoline() }

// g stands in for a goroutine: all of it is zero, so its stack limit is, too. Read by every direct call, never
// written.
//
//lint:ignore U1000 the trampoline has its address
var g [1024]byte

// probe is what the self-test calls: a function whose result depends on every argument. It and what it calls compare
// the
// stack pointer with the limit in all three forms that compilers write: for frames of up to 128 bytes, of up to 4 KiB,
// and for longer ones. Frames of the data plane have some 500 bytes at most.
func probe(a, b, c, d uintptr) uintptr {
	var frame [64]uintptr
	for i := range frame {
		frame[i] = a + uintptr(i)
	}
	return mix(&frame, b) ^ c<<8 ^ d<<16
}

// mix makes the frame of probe one that is in memory.
//
//go:noinline
func mix(frame *[64]uintptr, b uintptr) uintptr {
	sum := uintptr(0)
	for i := range frame {
		sum = sum*31 + frame[i]
	}
	return deep(sum) + b
}

// deep has a frame of more than 4 KiB.
//
//go:noinline
func deep(a uintptr) uintptr {
	var frame [deepWords]uintptr
	for i := range frame {
		frame[i] = a ^ uintptr(i)
	}
	return last(&frame)
}

// deepWords is the length of a frame in words.
const deepWords = 1024

// last makes the frame of deep one that is in memory.
//
//go:noinline
func last(frame *[deepWords]uintptr) uintptr { return frame[deepWords-1] + frame[0] }

// Probe returns the entry point of a function for the self-test, the arguments to give it, and what it must return.
func Probe() (entry uintptr, args [4]uintptr, want uintptr) {
	args = [4]uintptr{0x1111, 0x2222, 0x3333, 0x4444}
	return Entry(probe), args, probe(args[0], args[1], args[2], args[3])
}
