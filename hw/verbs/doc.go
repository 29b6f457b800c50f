// Package verbs is the backend for RDMA devices: InfiniBand, RoCE and soft-RoCE
// through libibverbs, which is loaded at run time (package ibv).
//
// # Model
//
// A [MemoryDomain] is an open device with a protection domain. An [Iface] on it
// has one datagram queue pair, its service queue pair, through which
// connections are made, and one shared receive queue. For each peer there are,
// when they are needed, up to three reliable connections:
//
//	messages  both directions; made by Connect, or by the peer's
//	memory    our one-sided operations; made by the first of them
//	passive   the peer's one-sided operations; nothing is posted here
//
// Messages and one-sided operations do not share a queue pair because a device
// answers a wrong remote key by breaking the connection. So a wrong key breaks
// only the connection that carries one side's one-sided operations, and there it
// is known which operation failed, that those before it were performed and that
// those behind it were not: they are posted again on a new queue pair.
//
// Messages carry their position in the sender's queue. When their connection
// breaks because packets were lost for too long, both sides make a new one, exchange
// the last positions they have, and go on behind it: nothing is lost
// or delivered twice, as long as the path comes back within the configured time.
//
// # Connections
//
// A device address names the port (GID and LID), the service queue pair, its
// key, and a random number that is another for each interface. Packets that do
// not carry the receiver's number are dropped before any state is kept for them.
// The packets of a hand-shake may be lost, doubled and delayed; service.go
// sends them again until both sides know of each other.
//
// # Posting
//
// Every connection has a ring of work requests (type queue). Threads claim
// places with one compare-and-swap, fill them and mark them ready; a thread that then
// finds the queue pair free posts all that are ready, in order, with one call
// into C. So no thread waits for another, and posts of several threads are
// batched. One-sided operations of them whose bytes at the peer follow one another
// are one work request.
//
// # Threads
//
// Operations on endpoints: any thread. Progress and CheckPeers: the holder of
// the progress lease; everything marked "lease" belongs to it. The service
// goroutine, one for each interface, is asleep unless a packet arrives or a
// hand-shake is under way; everything marked "service" belongs to it.
package verbs
