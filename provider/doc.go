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
