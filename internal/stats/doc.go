// Package stats is the page of counters that each process keeps in shared
// memory, beside its segments, for "weft top", "weft export" and "weft doctor"
// to read without stopping the process or loading anything into it.
//
// # Model
//
// A process has one page while it has an enabled endpoint: an owner-only file
// called weft-stats.<uid>.<pid namespace>.<pid> in the directory of the
// segments. It starts with a header that names the process and the layout;
// then follows one block for each endpoint:
//
//	header   which process, which table; counters of the process
//	block    name | the lease holder's words | shared words
//	         64 lines of threads             (C's posting path)
//	         64 lines of stripes             (Go's posting path)
//	         64 lines of peers
//
// [Table] describes every counter: its name, unit, kind, help, and the words
// whose sum it is. The reader, the documentation and the names of the
// Prometheus metrics all come from it. The header holds a hash of the table: a
// reader that has another table shows the process without its counters.
//
// # Which side writes what
//
// Every word is written by one owner at a time with a plain load, addition and
// store: a thread writes its line, the holder of a stripe's lease that stripe's,
// the holder of the progress lease its own words and those of peers. No two
// owners share a cache line. Only the last line of threads and of stripes,
// which those without a line of their own share, and the shared words, which
// count what is rare, are written by locked additions.
//
// All accesses are relaxed. A reader may see a message counted whose bytes are
// not yet; counters never go back while an endpoint is open.
//
// # Trust
//
// The reader copies the file with pread, so a file that shrinks is a short read
// and no fault, and checks everything in the copy. The writer never reads back
// a word for anything but adding to it. It reserves the memory of a block
// before using it, so a full file system costs the counters of that endpoint
// ([Endpoint.Shown] is false then) and nothing else.
//
// # Limits
//
// A page shows [MaxEndpoints] endpoints and [MaxPeers] peers of each; more of
// them count, but are not shown. A process of the same user that truncates the
// file ends the writer with SIGBUS, as with segments.
package stats
