// Package udp is the software NIC of a network: interfaces that exchange
// active messages over UDP, reliably and in order.
//
// # Model
//
// An [Iface] is one UDP address and port, with one socket for each stripe
// (package sock). Two interfaces that talk share connections: one side asked
// for it, either may send over it. A connection belongs to one stripe on each
// side; [Endpoint] is one side of it.
//
// Messages are records in a stream of bytes. The sender keeps the stream in a
// ring until it is acknowledged, in slots as large as full packets carry
// (sendRing). Packets are cuts of it, of the size that the path takes (package
// wire); what is lost is cut anew. The receiver puts the stream together in a
// ring of its own and delivers records from there, without another copy. Its
// credit, up to where the sender may send, is what it has delivered plus the
// size of its ring.
//
// The way of a message through the files:
//
//	post.go      AMShort, AMBcopy: a record into the stream (reserve, commit)
//	sender.go    transmit: what congestion and credit let out; train.go: several packets as one
//	packet.go    send: a packet, with the acknowledgement that is owed, into the stripe's batch
//	stripe.go    flush: the batch to the socket
//	receive.go   receive, dispatch: datagrams off the socket
//	receiver.go  data: packets put together to the stream
//	deliver.go   Progress: records to handlers
//
// What is acknowledged, lost and to be sent again is package recovery's
// business, how much may be under way is package congestion's.
//
// # Connections
//
// The client sends an Init, which costs the server an answer no longer than
// the question and no memory: the answer is a cookie. The Init that brings it
// back shows that the client is where it says, and gets an Accept. Both sides
// draw 43 bits of each connection id at random; a packet without the right one is
// answered by a Reset, at a bounded rate, from which the other side learns
// that its peer is another process now. With an authorisation key all this is
// authenticated (package crypt), and a Reset, like ICMP's word, is only a hint:
// the peer is dead if it does not answer then.
//
// # Threads
//
// Everything of a connection belongs to the holder of its stripe's lease, a
// lock that is taken for one operation at a time: a posting thread cuts and
// sends itself, and takes in acknowledgements when it finds no room. Delivery
// belongs to the progress lease, which the caller holds: handlers run without
// a stripe's lease, and may send.
//
// While Progress is not called, one goroutine for each interface, the timer
// loop (type timerLoop), does acknowledgements, retransmission and connections now
// and then, so that peers do not take a process that computes for dead. It
// delivers nothing.
//
// # Hostile peers and networks
//
// Work and memory that a stranger can cause are bounded: see the limits in
// limits.go. What a peer sends is checked against the window that it was given;
// records in the stream are read where the peer cannot change them any more.
// Without an authorisation key a host that sees the packets can forge them; one
// that does not has to guess 64 bits.
package udp
