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
// docs/architecture.md follows operations through it. Files are named after what they are about:
//
//	fabric, domain*                   what is opened first
//	peering, initiator, endpoint*     endpoints, in three layers
//	scalable*, shared*, connection*   contexts of endpoints; connected endpoints
//	link*, transport*                 paths to peers over interfaces (package links)
//	senders, identities, peer_restart peers that send, by name and source
//	transmit*                         messages, at their sender (package messages)
//	receiv*, rxcontext*               messages, at their receiver (package receive), and progress
//	rendezvous                        long messages (package rendezvous)
//	rma*, atomic                      one-sided operations, at their initiator (package rma)
//	onesided                          and at their target (package onesided)
//	list*, token*, mapping            lists of pieces of remote memory, and tokens of it (packages list, tokens)
//	note, notify                      notifications
//	mr*, device*, rdma*               regions, memory of devices, RDMA devices
//	collective                        collectives (package coll)
//	matched*                          endpoints whose messages a NIC matches
//	deferred_*                        what triggered and deferred operations do
//	progress_*, service               weft's own threads
//	peer_context                      receive contexts of other providers (fi_peer(3))
//
// The packages below hold what needs no endpoint:
//
//	names, av         names and vectors of addresses
//	atomics           operations of fi_atomic(3) on memory
//	authkey           authorisation keys
//	backends, watch   transports: how they are opened, and when those to other hosts are polled
//	claim             chunks of a copy that two processes share
//	cm, conn          connections: their messages; connections, listeners and passive endpoints
//	coll              collective operations: groups, and the messages of their members
//	collective        algorithms of collective operations
//	deferred          operations that wait for counters
//	flow              segments of long operations under congestion windows
//	hmem              memory of devices, regions of it, and mappings of it by other processes
//	region            regions, and the keys by which peers name them
//	links             links to peers, paths over transports, and the ways back to senders
//	lease, tables     state that one thread has at a time; memory that C reads
//	list              lists of pieces of remote memory
//	mapping           memory of processes on this host, mapped for lists
//	members           what endpoints whose messages a NIC matches are to each other beside that
//	messages          messages, at their sender
//	note              notifications
//	onesided          one-sided operations at their target; answers to those of the data plane
//	ordering          order among one-sided operations
//	outcome           errnos of what transports return
//	pages             huge pages for memory that is used often
//	peers             addresses and identities of peers, and tables of what is known of them
//	pieces            elements of lists, and how they are cut
//	refs              users of objects that are closed
//	receive           messages, at their receiver
//	rendezvous        long messages: reads, gets and fragments, at both sides
//	rkey              keys by which devices reach memory of peers
//	rma               one-sided operations, at their initiator
//	service           the process's service thread
//	tally             what endpoints count
//	target            where the message of a receive goes
//	threads           what the data plane needs of a thread, for goroutines
//	token, tokens     memory tokens: their format; how they are made and opened
//	vector            bytes of vectors of memory
//	wire, control     messages, one a file, and short ones that wait for room
//
// Of ../internal: info (fi_getinfo), addrs (indexes of addresses), match (receives and unexpected messages), matched
// (messages that a NIC matches), probe (round trips to idle peers), dataplane (posts and progress without the runtime).
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
