// Package matched is an endpoint with a device that matches its messages ([hw.Matcher]): it posts sends, receives,
// searches, cancels, and reads and writes of peers' memory ([hw.MemoryMatcher]), keeps what is known of them until the
// device says what has become of them, and turns that into completions.
//
// Package provider has the object around it: names, bindings, completion queues, counters, wait objects.
//
// # Threads
//
// Any thread may post. A mutex guards the table of operations; the device is called without it. Progress
// belongs to the holder of the progress lease, which calls the device and completes operations.
//
// # Memory
//
// A message or write that the device takes in at once (MatchAttr.MaxInject) needs no registration. Other memory, and
// that of receives, is registered for as long as the operation is under way, by way of the cache of registrations.
package matched
