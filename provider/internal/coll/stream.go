package coll

import (
	"time"

	"github.com/weft-fabric/weft/hw"
)

// Words to a peer go in the stream that its slice goes in, behind what has been posted. Of slices so much waits there
// at most: streamLeast bytes, and what the path takes in streamTime.
const (
	streamLeast = 16 << 10
	streamTime  = 20 * time.Millisecond
)

// behind reports whether what is posted next would wait for too long in the stream of a path, as far as its transport
// says.
func behind(path Path) bool {
	r, ok := path.Transport().(hw.PathReporter)
	if !ok {
		return false
	}
	at, ok := r.Path()
	return ok && waits(&at) > streamTime && at.Waiting >= streamLeast
}

// waits is how long what is posted next waits until it is sent, at a window each round trip.
func waits(at *hw.PathInfo) time.Duration {
	return time.Duration(float64(at.Waiting) / float64(max(at.Window, 1)) * float64(at.RTT))
}
