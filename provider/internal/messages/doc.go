// Package messages sends the messages that the data plane leaves to the runtime, and ends them. Messages that come in
// are the receive context's, and what follows the RTS of a long one is package rendezvous's.
//
//	sender                  receiver
//	   message         →              with its payload: it has ended when it is posted
//	   sync            →              with its payload, and the sender waits
//	   RTS             →              without: the receiver fetches the payload, or has it sent
//	                   ←    ACK       of a sync or an RTS, with the outcome
//
// A datagram is a message that is dropped rather than kept, if there is no room for it.
//
// Files:
//
//	send               a message, and which are valid
//	post               which way a message goes; datagram: of an endpoint whose messages may be lost
//	eager, payload     messages with their payload, of memory of any kind
//	tracked, rts       messages that wait for an ACK
//	copies             messages for which there is no bounce buffer
//	requests           those that wait, by number
//	sender             what an endpoint keeps of its messages
//	protocol           what progress does with them: ACKs, and peers that are gone
//	host               what is needed of the endpoint
//
// # Threads
//
// Any thread posts, with a stripe's lease for the time of the post. A [Protocol] is for the holder of the progress
// lease, and nothing here leads from a [Sender] to it.
package messages
