// Package list reads and writes lists of pieces of remote memory. A list is prepared once and posted often: what
// depends on the pieces alone is checked when it is prepared; a post has the way of each element chosen, and is one
// operation with one completion.
//
//	endpoint   what is needed of the endpoint, its peers and regions
//	list       a list: its preparation, and its end
//	post       a post: its checks, its notification, and elements that the posting thread copies
//	share      the same together with a target that makes progress
//	elements   elements that go by themselves, and the end of a post
//	together   consecutive elements that go as one request
//	local      local memory that a device knows as long as a post lasts
//	mapped     elements with memory of devices; delegated: those that their owner copies
//	plain      reads and writes with memory of devices, which are posts of lists, too
//	posts      the posts of an endpoint that are under way
//	tally      what has taken each way to a peer
//
// # The way of an element
//
// A post goes through these in their order; each leaves to the next what it cannot move, with FI_WEFT_TOKEN_WAYS
// turning some off:
//
//  1. The posting thread copies what is memory of processes of this host, many pieces with a system call, alone or with
//     the target.
//  2. A goroutine copies what is memory of devices on this host, by mappings, or asks the owner to.
//  3. The thread that runs the work queue posts all else, as operations of the endpoint, which go by an RDMA device or
//     as messages.
//
// An element that fails has none begun after it. The post ends, when those that are under way have, with the error of
// the first by its number.
//
// # Limits
//
// The package knows no domain and no transport: an endpoint, its peers, regions and devices are interfaces ([Endpoint],
// [Peer], [Path], [Region], [Device]). What the elements are is package pieces'. Posts that need none of this are the
// data plane's (internal/dataplane), by the list's [List.Shape].
package list
