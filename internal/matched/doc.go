// Package matched is an endpoint with a device that matches its messages ([hw.Matcher]): it posts sends, receives,
// searches, cancels, and reads and writes of peers' memory ([hw.MemoryMatcher]), keeps what is known of them until the
// device says what has become of them, and turns that into completions.
//
// Package provider has the object around it: names, bindings, completion queues, counters, wait objects.
//
// # Threads
//
// Any thread may post. The table of operations is in stripes: a post leases one while it takes a place from it, and
// calls the device without a lease. Progress belongs to the holder of the progress lease, which calls the device,
// completes operations, and gives their places back without the lease of a stripe. So two threads that post, and one
// that makes progress, meet in none of the table's locks as long as there are as many stripes as threads that post.
//
// # Memory
//
// A message or write that the device takes in at once (MatchAttr.MaxInject) needs no registration. Other memory, and
// that of receives, is registered for as long as the operation is under way, by way of the cache of registrations.
package matched
