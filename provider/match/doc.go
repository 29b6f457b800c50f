// Package match pairs the messages that reach a receive context with the receives posted on it.
//
// # Model
//
// An Engine holds two queues: posted receives, and unexpected messages, which arrived before a receive wanted them. A
// receive names a source (or AnySource), a tag and the tag bits to ignore. A message has a source and a tag. They
// match when the source is the same or any, and the tags agree in all bits that are not ignored.
//
//   - An arriving message takes the matching receive that was posted first (Arrive); if there is none it is held (Hold).
//   - A receive takes the matching message that arrived first; if there is none it is posted (Post does both).
//
// So no posted receive matches any held message at any time. Untagged messages are the same with tag 0 and nothing
// ignored; a receive context has one engine for tagged and one for untagged messages, because they do not match each
// other.
//
// Nodes (Recv, Message) belong to the engine while they are queued. When the engine hands one out for good it is the
// caller's, who releases it: Post, Arrive, Take, TakeClaimed, Cancel, Remove and RemoveMessage hand out; Release and
// ReleaseMessage end it. The user words of a node (Buf, Len, …) are the caller's; the engine reads Recv.Keep and
// Recv.Context and nothing else of them.
//
// # How
//
// Receives that ignore the same bits and either all name a source or all do not form a class. In a class, matching
// is equality of (source, tag without the ignored bits), so each class has a hash table of its receives, and one of
// all held messages under the class's key. A receive looks for a message in its own class only. A message looks for
// a receive in every class that has some, and takes the one that was posted first. Equal keys share a bucket and
// form a list in queue order. Both cost the same, in expectation, for ten queued nodes and for a hundred thousand.
// Hashes are keyed with random numbers, so that a peer cannot choose tags that collide.
//
// Each queue also has its nodes in order, in an array with holes, for Cancel, for iteration, and because the place in
// it tells which of two receives was posted first.
//
// # Limits
//
// There are MaxClasses classes. A class in which no receive is posted gives way to a new one if few messages are
// held; otherwise receives beyond the classes are kept in one list, which arrivals search linearly, and they search
// the held messages linearly.
//
// A table that is full doubles, and an order array that is full is compacted or doubles. That touches each entry
// once: about 1 ms at 100,000 entries, once per doubling or per half of the array. A new class indexes the
// messages that are held: about 2 ms for 100,000. Memory that a burst took is given back after the structure has been
// empty a few hundred times, and by Trim.
//
// # Concurrency
//
// An engine has one owner at a time, the holder of the progress lease; nothing in it is atomic or locked, and the
// lease's acquire and release order one owner's accesses before the next one's. Nodes are off the Go heap; no call
// allocates on the Go heap, except that memory is mapped.
package match
