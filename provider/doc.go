// Package provider is what libfabric means: fabric, domain, address vector,
// endpoint, memory region and the two-sided protocol, over the transports of
// package hw.
//
// # Objects
//
//	Fabric ── eq.Queue, cq.WaitSet
//	  └ Domain ── cq.Queue, cq.Counter, cq.PollSet
//	      ├ AV          addresses of peers, by index
//	      ├ MR          registered memory
//	      ├ Endpoint    sends and receives
//	      ├ SharedTx, SharedRx
//
// [GetInfo] says what there is to open. Every object counts its users: closing
// one that another open object uses fails with fi.EBUSY and changes nothing. An
// object is closed once; it must not be used while or after that happens.
//
// # Ways through this package
//
// docs/architecture.md follows operations through it. Files are named after what they are about: endpoint_*.go, link.go
// and peer.go (peers), transmit.go and receive.go (messages), rendezvous.go, assist.go and fragments.go (long
// messages), rma_*.go, transfer*.go and segmentflow.go (one-sided operations), conn*.go (connections), coll_*.go
// (collectives), work*.go (what triggered and deferred operations do), mr*.go (regions), device*.go (regions and
// messages in memory of devices). The packages below hold what needs no endpoint:
//
//	addrs, names  indexes of address vectors; names of endpoints
//	match         receives and unexpected messages
//	claim         chunks of a copy that two processes share
//	atomics       operations of fi_atomic(3) on memory
//	cm            messages of connection management
//	conn          connections and listeners of connection-oriented endpoints
//	collective    algorithms of collective operations
//	deferred      operations that wait for counters
//	flow          segments of long operations under congestion windows
//	hmem          memory of devices, and mappings of it by other processes
//	info          fi_getinfo
//	keys          regions by the keys that peers name
//	lease         state that one thread has at a time
//	pages         huge pages for memory that is used often
//	token         memory tokens
//
// # Threads
//
// Opening, closing, binding and every other control operation may be called
// from any thread. Which calls of the data path may meet is the domain's
// threading model, which [Domain] translates.
//
// # Errors
//
// Errors are, or wrap, an fi.Errno; fi.ErrnoOf finds it.
package provider
