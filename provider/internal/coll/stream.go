package coll

import (
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// Words to a peer go in the stream that its slice goes in, behind what has been posted. So a slice is delayed while
// more waits there than streamLeast bytes and than the path takes in streamTime, or in twice the time between two pumps
// where the application polls rarely. After streamLongest it goes on with a fragment, whatever waits: another flow to
// the
// peer may fill the stream for as long as it likes.
const (
	streamLeast   = 16 << 10
	streamTime    = 20 * time.Millisecond
	streamLongest = 200 * time.Millisecond
	streamCheck   = time.Millisecond // what waits in streams is not asked more often
	streamGap     = time.Second      // between two pumps, at most
)

// delayed is since when a slice is delayed, 0: it is not.
type delayed congestion.Time

// streams is how often what waits is pumped, and the streams of what is delayed are asked.
type streams struct {
	pumped  congestion.Time // 0: nothing is under way
	gap     time.Duration   // between two pumps, the longest lately
	checked congestion.Time
	checks  bool // this pump asks the streams
}

// pump takes in that what waits is pumped.
func (s *streams) pump(now congestion.Time) {
	if s.pumped != 0 {
		s.gap = min(max(s.gap-s.gap/8, now.Sub(s.pumped)), streamGap)
	}
	s.pumped = now
	if s.checks = now.Sub(s.checked) >= streamCheck; s.checks {
		s.checked = now
	}
}

// delays reports whether a slice is to be delayed at a time on a path, as far as its transport says what waits there.
func (s *streams) delays(d *delayed, now congestion.Time, path Path) bool {
	ep := path.Transport()
	stream, streams := ep.(hw.Streamer)
	r, reports := ep.(hw.PathReporter)
	if !streams || !reports {
		return false
	}
	waiting, known := stream.Unsent()
	if !known {
		return *d != 0
	}
	at, ok := r.Path()
	switch {
	case !ok || waiting < streamLeast || leaves(waiting, &at) <= max(streamTime, 2*s.gap),
		*d != 0 && now.Sub(congestion.Time(*d)) >= streamLongest:
		*d = 0
	case *d == 0:
		*d = delayed(now)
	}
	return *d != 0
}

// leaves is how long it takes until so many bytes are sent, at a window each round trip.
func leaves(waiting int64, at *hw.PathInfo) time.Duration {
	return time.Duration(float64(waiting) / float64(max(at.Window, 1)) * float64(at.RTT))
}
