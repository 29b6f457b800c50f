// Package coll carries out collective operations (fi_collective(3)). Package collective says what the ranks of a group
// send each other; here is how it gets there:
//
//	endpoint    what is needed of the endpoint
//	coll        the protocol, and the groups of an endpoint
//	complete    completions and counters
//	group       groups: the members, and how they leave
//	join        how the joins of members meet
//	post        the calls, and their arguments; vector, persistent: those of all-to-alls of parts
//	run         operations under way, and the messages of their steps
//	early       messages that come before their receive
//	long        payloads that stay with the sender until they are fetched
//	exchange*   all-to-alls whose order package exchange chooses
//	arrival     counters of members whose bytes are in place
//	put, get    chunks that are copied to or from the memory of the peers; kept: registrations that stay
//	beside      what members of one host say to each other of its link
//	relay       pieces that go through other members
//	row, report what is known of the paths at the start, and what is said at the end
//	settings    what all members must have alike
//	fail        peers that are gone, and operations that end because of it
//	inspect     what is under way, for tests and statistics
//
// A message of a step goes in one piece if it is no longer than an eager message and the receiver's eager window is
// open; else an RTS goes, and the receiver reads it or asks for fragments. What comes too early is kept, in the same
// account as unexpected messages, so the same bound holds back senders.
//
// # Threads
//
// [Groups] is for any thread, [Protocol] for the holder of the endpoint's progress lease: New returns both to the
// endpoint, which keeps the Protocol where only the holder finds it. What is posted goes from the one to the other by a
// list. A Group has the state of both; its fields say which.
//
// # Limits
//
// The package knows no domain and no transport: an endpoint, its peers and its transports are interfaces ([Endpoint],
// [Leased], [Peer], [Path]). Buffers are host memory that the collector does not move.
package coll
