// Package rendezvous carries long messages: the sender sends an RTS, and keeps the payload until the receiver has read
// it, or has asked for it, and says so with an ACK.
//
//	sender                       receiver
//	   RTS            →                      the endpoint matches it with a receive ([Host.Arrived], [Protocol.Start])
//	                  ←          CTS, offer, landing, or nothing: by the way that the payload takes
//	   fragments, chunks, puts →
//	                  ←          ACK         the endpoint has both sides complete ([Host.Complete], [Protocol.Ended])
//
// The ways, of which the receiver chooses:
//
//	read           it reads the memory of a process of this host; segments: cut, under a congestion window
//	shared_*       the same in chunks, of which it offers the sender a share: the sender assists, and writes into the
//	               receiver's memory (package claim says which side has a chunk)
//	get            it gets memory that the sender has exposed (package rkey)
//	helped_*       the same over a device that is software: the sender helps, and puts chunks from the end
//	foreign        it maps memory of the sender's device
//	fragments_*    the sender sends the payload through its bounce buffers
//
// Files that end in rx are the receiver's, in tx the sender's. Besides:
//
//	host           what is needed of the endpoint
//	message        what the endpoint says of a message that has matched
//	protocol       the messages, and what an endpoint has under way
//	receiver       what a receive context has under way
//	operation      a message that is being read: how it begins, goes on and ends
//	inspect        what is under way, for tests and statistics
//
// # Threads
//
// A [Receiver] belongs to a receive context, and has a [Protocol] for each endpoint that delivers into it. All is for
// the holder of the context's progress lease: the endpoint keeps both where only the holder finds them.
//
// # Peers
//
// What peers send is checked: they can spoil messages between them and this side, and nothing else. A number that a
// peer sends names an operation only with its generation, and only to the sender of its message; a request only to the
// peer that it was sent to.
//
// # Limits
//
// The package knows no domain and no transport: an endpoint and its paths are interfaces ([Host], [Path]).
package rendezvous
