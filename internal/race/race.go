// Package race reports whether the race detector is built in. It does not see
// order that goes through shared segments, and makes programs slow.
package race
