// Package weft sends messages between processes and reads and writes the memory of peers, for Go programs: buffers are
// byte slices, calls that wait take a context, and errors are found by [errors.Is]. It is a thin layer over package
// provider, which has all of libfabric's objects.
//
// # Model
//
// An [Endpoint] has an address. [Endpoint.Peer] turns the address of another endpoint into a [Peer]. Messages are
// tagged: [Endpoint.Send] names a peer and a tag, [Endpoint.Recv] takes the oldest message that its [Match] fits.
// Messages of one sender that fit one Match arrive in the order in which they were sent. [Endpoint.Register] makes
// memory accessible to peers; its [Region.Token] is a line of text by which a peer opens it ([Endpoint.OpenRemote])
// for [Endpoint.Read] and [Endpoint.Write]. C programs over libfabric are peers like any other.
//
// # Two forms
//
// Send, Recv, Read and Write return when the operation has completed. StartSend, StartRecv, StartRead and StartWrite
// return when it is posted; what has completed is yielded by [Endpoint.Completions]. They give [fi.EAGAIN] when there
// is no room: read completions, and try again.
//
// # Progress
//
// Transfers make progress while a goroutine is in a blocking call or reads completions. A call that waits polls for
// some tens of microseconds; then its goroutine is parked in the runtime's poller, and no thread is kept.
//
// # Memory
//
// The slice of an operation is in use from the call until the operation has completed; it is kept reachable for so
// long, and it is on the heap, where Go's collector does not move it. Memory of a [Region] is kept reachable and
// pinned ([runtime.Pinner]) until [Region.Close].
//
// # Errors
//
// The error of an operation is an [Error], which wraps the [fi.Errno]: errors.Is(err, fi.ETRUNC), and for the system's
// numbers errors.Is(err, syscall.ECONNRESET). A call whose context ends gives the context's error. After
// [Endpoint.Close] everything gives [net.ErrClosed].
//
// # Concurrency
//
// All methods may be called by any number of goroutines at a time.
package weft
