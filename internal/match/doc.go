// Package match pairs the messages that reach a receive context with the receives posted on it.
//
// # Model
//
// An Engine holds two queues: posted receives, and unexpected messages, which arrived before a receive wanted them. A
// receive names a source (or a Group, or AnySource), a tag and the tag bits to ignore. A message has a source and a
// tag. They match when the source is the same, in the group or any, and the tags agree in all bits that are not
// ignored.
//
//   - An arriving message takes the matching receive that was posted first (Arrive); if there is none it becomes
//     unexpected (Hold).
//   - A receive takes the matching message that arrived first; if there is none it is posted (Post does both).
//
// So no posted receive matches any unexpected message at any time. Untagged messages are the same with tag 0 and
// nothing ignored; a receive context has one engine for tagged and one for untagged messages, because they do not match
// each other.
//
// Nodes (Recv, Message) belong to the engine while they are queued. When the engine hands one out for good it is the
// caller's, which releases it: Post, Arrive, Take, TakeClaimed, Cancel, Remove and RemoveMessage hand out; Release and
// ReleaseMessage end it. The user words of a node (Buf, Len, …) are the caller's; the engine reads Recv.Context, for
// Cancel, and nothing else of them.
//
// # How
//
// Receives that ignore the same bits and all name a source, or all a group, or all neither form a class. In a class,
// matching is equality of (source, tag without the ignored bits), so each class has a hash table of its receives, and
// one of all unexpected messages under the class's key. A receive searches for a message in its own class only. A
// message searches for a receive in every class that has some, and takes the one that was posted first. Equal keys
// share a slot and form a list in queue order. Hashes are keyed with random numbers, so that a peer cannot know which
// tags collide.
//
// Each queue also has its nodes in order, in an array with holes, for Cancel, for walks, and because the place in it
// says which of two receives was posted first.
//
// A match touches one cache line of a table, the first line of the node, and a word of the order, however many nodes
// are queued; where several nodes have the same key, also the second line of one or two of them.
//
// # Limits
//
// There are MaxClasses classes. A class in which no receive is posted gives way to a new one if few messages are
// unexpected; otherwise receives beyond the classes are kept in one list, which arrivals search linearly, and they
// search the unexpected messages linearly. With n classes in use, an unexpected message costs n insertions, and n
// removals.
//
// A table that is full doubles, which reads each of its keys' first nodes: about 1 ms at 100,000. An order array that
// is full doubles or closes its holes: 0.2 ms. The first receive of a new class indexes the unexpected messages: 1
// ms for 100,000. Reclaim gives memory that a burst took back after the structure has become empty a few hundred
// times, Trim at once. Cancel is linear: 0.1 ms for the last of 100,000.
//
// # Concurrency
//
// An engine has one owner at a time, the holder of the progress lease; nothing in it is atomic or locked, and the
// lease's acquire and release order one owner's accesses before the next one's. Nodes are off the Go heap; no call
// allocates on the Go heap, except where it maps memory or finds none to be had.
//
// Calls that say that they need nothing of the runtime, Arrive, Find, Remove and RemoveMessage are for the data plane
// (package dataplane), which runs on threads without a goroutine: they map and unmap nothing.
package match
