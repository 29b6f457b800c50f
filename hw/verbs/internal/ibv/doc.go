// Package ibv is libibverbs for Go: devices, queue pairs, completion queues,
// a data path on which one call does many operations, and how C drives an interface by Go code (seam.h).
//
// The library is loaded at run time by [Load]; without it every program still
// starts, and Load says what is missing. The structures are those of
// rdma-core's headers, compiled in.
//
// Objects are plain pointers of the library: the caller destroys each that it has made, once,
// after everything made from it. Errors are errno values (unix.Errno), wrapped with the
// step that failed. Nothing here takes a lock of its own; what libibverbs allows
// from several threads is allowed here.
package ibv
