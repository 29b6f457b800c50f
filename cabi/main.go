// Command cabi is weft as C programs load it: libfabric's objects, operation
// tables and entry points in front of the Go packages. It is built with
// -buildmode=c-shared, twice:
//
//   - without tags as libweft-core.so, the provider for a libfabric of 1.17 or
//     2.x. Folder loader has libweft-fi.so, which libfabric loads, and which
//     loads this library when an application wants weft,
//   - with the tag direct as libweft.so, which exports libfabric's own entry
//     points and needs no other library.
//
// # Sides
//
// Applications hold the C objects of objects.h. Each has a handle, the number
// of its Go counterpart in the table of handle.go. The C functions check what
// can be checked without Go, and make one call to a function weftGo…, which
// converts the arguments and makes one call into the packages below. No Go
// pointer is kept in C and no panic crosses. Operations are posted and arrivals
// taken in, and queues read, by package dataplane, which C calls without the
// runtime (plane.h).
//
// # Limits
//
// The library cannot be unloaded (it is linked with -z nodelete), and its
// objects do not work in a forked child (fork.c). It needs no signal: it is
// linked with asynchronous preemption off.
package main

// #cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -fvisibility=hidden
// #cgo profile CFLAGS: -DWEFT_PROFILE=1
// #cgo LDFLAGS: -ldl
import "C"

// main is never called: the library has no program of its own.
func main() {}
