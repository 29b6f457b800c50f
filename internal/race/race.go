// Package race reports whether the race detector is built in, and shows it leases. It does not see words off the Go
// heap, so that what a lease there protects would be a race to it; it does not see order that goes through shared
// segments, and makes programs slow.
package race
