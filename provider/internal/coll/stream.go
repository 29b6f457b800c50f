package coll

import (
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// Words to a peer go in the stream that its slice goes in, behind what has been posted. So a slice is held while more
// waits there than streamLeast bytes and than the path takes in streamTime, or in twice the time between two looks where
// the application polls rarely. Held for streamPatience it goes on with a fragment, whatever waits: another flow to the
// peer may fill the stream for as long as it likes.
const (
	streamLeast    = 16 << 10
	streamTime     = 20 * time.Millisecond
	streamPatience = 200 * time.Millisecond
	streamLook     = time.Millisecond // slices that are held are not looked at more often
	streamGap      = time.Second      // between two pumps, at most
)

// held is since when a slice is held, 0: it is not.
type held congestion.Time

// streams is how often what waits is pumped, and looked at where it is held.
type streams struct {
	pumped congestion.Time // 0: nothing is under way
	gap    time.Duration   // between two pumps, the longest lately
	looked congestion.Time
	look   bool // this pump looks at slices that are held
}

// pump takes in that what waits is pumped.
func (s *streams) pump(now congestion.Time) {
	if s.pumped != 0 {
		s.gap = min(max(s.gap-s.gap/8, now.Sub(s.pumped)), streamGap)
	}
	s.pumped = now
	if s.look = now.Sub(s.looked) >= streamLook; s.look {
		s.looked = now
	}
}

// passes reports whether a slice is held and not looked at now.
func (s *streams) passes(h held) bool { return h != 0 && !s.look }

// holds reports whether a slice is to be held on a path, as far as its transport says what waits there.
func (xs *exchanges) holds(h *held, path Path) bool {
	ep := path.Transport()
	s, streams := ep.(hw.Streamer)
	r, reports := ep.(hw.PathReporter)
	if !streams || !reports {
		return false
	}
	waiting, known := s.Unsent()
	if !known {
		return *h != 0
	}
	at, ok := r.Path()
	now := xs.c.ep.Now()
	switch {
	case !ok || waiting < streamLeast || leaves(waiting, &at) <= max(streamTime, 2*xs.streams.gap),
		*h != 0 && now.Sub(congestion.Time(*h)) >= streamPatience:
		*h = 0
	case *h == 0:
		*h = held(now)
	}
	return *h != 0
}

// leaves is how long it takes until so many bytes are sent, at a window each round trip.
func leaves(waiting int64, at *hw.PathInfo) time.Duration {
	return time.Duration(float64(waiting) / float64(max(at.Window, 1)) * float64(at.RTT))
}
