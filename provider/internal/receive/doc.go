// Package receive matches the messages that the data plane leaves to the runtime with receives, keeps those that match
// none, and completes receives. Messages at their sender are package messages's, and the payload of a long one is
// fetched by package rendezvous.
//
//	message or sync  → a receive matches: its payload is copied, the receive completes, a sync is acknowledged
//	RTS              → a receive matches: the payload is fetched, and then likewise
//	                 → none does: the message is unexpected, until a receive or a search takes it
//
// Files:
//
//	message          a message while it is delivered, and what is kept of one
//	arrival          messages with their payload: handlers, matching, unexpected ones, delivery
//	long             messages without it
//	multi            buffers of several messages
//	posted, posts    receives, which are valid, and how any thread posts them
//	post, search     what is done with them
//	completion       completions of receives
//	owned            receives of another provider
//	context          a receive context, and what its unexpected messages may take
//	endpoint         an endpoint that delivers into it
//	host             what is needed of the endpoint, and of the receive context
//
// # Threads
//
// A [Context] and its Endpoints are for the holder of the progress lease. [Posts], [Start], [Discard] and [Addr] are
// for any thread.
package receive
