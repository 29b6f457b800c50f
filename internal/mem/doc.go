// Package mem hands out memory that the Go garbage collector neither scans nor moves.
//
// Everything in it is anonymous private memory from mmap, so that requests, queues and kept data of the data path
// live outside the Go heap: they cost no garbage collection, keep their address, and go back to the kernel when they
// are no longer needed.
//
//	Map, Unmap   whole pages
//	Array[T]     a fixed number of T in one mapping, read and written by index without a bounds check
//	Growing[T]   an array of elements that take memory when they are first needed, at addresses that stay
//	Buffers      a fixed number of byte buffers of one length, which take memory when they are first used
//	Slab[T]      objects of one size, allocated and freed one by one, named by a pointer or by a 32-bit index
//	Pool         byte buffers in power-of-two classes
//
// Objects may not hold Go pointers, because nothing would keep what they point to alive; constructors check T.
// Links between objects are indexes (0 is "none").
//
// # Concurrency
//
// Map and Unmap may be called by any thread, as may At of Buffers. An Array, Slab or Pool has one owner at a time and
// takes no lock; the owner of the data path is the holder of the progress lease: its acquire and release order these
// accesses.
//
// # Limits
//
// A pointer into a mapping must not be used, nor kept in a variable, after the mapping is gone: the Go runtime may
// get the same addresses for its heap, and takes a stale pointer in a live variable for a broken one.
package mem
