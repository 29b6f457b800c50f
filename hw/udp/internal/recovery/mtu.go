package recovery

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// MTU finds how large a packet the path carries: RFC 8899, datagram
// packetization layer path MTU discovery. Sizes are bytes of UDP payload. The
// zero value is not usable; see NewMTU. One owner at a time.
//
//	search: a probe of Next bytes is under way or due; good is known to work
//	done:   good is the largest that works; a new search begins after a while
//	hole:   good did not get through any longer: back to the least, search again
type MTU struct {
	least   int // works everywhere
	most    int // the interfaces' and the peer's limit
	good    int // works
	bad     int // least size known not to work, most+1 at first
	probing int // size of the probe under way, 0: none
	tries   int // of this size, that were lost
	holes   int // timeouts in a row with packets above least
	hole    int // least size of those
	again   congestion.Time
}

// Constants of RFC 8899, section 5.1.
const (
	maxProbes  = 3
	raiseAfter = 10 * time.Minute
	enough     = 16 // bytes that are not worth another probe
	blackHole  = 3  // timeouts
)

// NewMTU starts at least bytes and will not go beyond most.
func NewMTU(least, most int) MTU {
	most = max(least, most)
	return MTU{least: least, most: most, good: least, bad: most + 1}
}

// Size is how large packets may be.
func (m *MTU) Size() int { return m.good }

// Next returns the size of a probe to send now, 0 for none. The first is the
// largest: it most often works.
func (m *MTU) Next(now congestion.Time) int {
	if m.probing != 0 {
		return 0
	}
	if m.good >= m.most || m.bad-m.good <= enough {
		if m.again == 0 {
			m.again = now.Add(raiseAfter)
		}
		if now < m.again || m.good >= m.most {
			return 0
		}
		m.bad, m.again = m.most+1, 0 // the path may have changed
	}
	if m.bad > m.most {
		return m.most
	}
	return (m.good + m.bad) / 2
}

// Sending takes in that a probe of size bytes leaves.
func (m *MTU) Sending(size int) { m.probing = size }

// Arrived takes in that a packet of size bytes got through.
func (m *MTU) Arrived(size int) {
	if size == m.probing {
		m.probing, m.tries = 0, 0
	}
	m.Late(size)
	if size > m.good && size <= m.most {
		m.good = size
		m.bad = max(m.bad, size+1)
	}
}

// Late takes in that a packet of size bytes that was taken for lost had got through. The path may have shrunk since it
// was sent, so that Size does not grow.
func (m *MTU) Late(size int) {
	if size >= m.hole {
		m.holes = 0
	}
}

// Answered takes in that the peer answers, after Arrived and Late for all that it acknowledges. It returns true when
// the path's MTU seems to have shrunk and Size is the least again: small packets
// get through, and large ones did not, several times.
func (m *MTU) Answered() (shrunk bool) {
	if m.holes < blackHole {
		return false
	}
	m.bad = min(m.bad, m.hole)
	m.good, m.holes, m.probing, m.tries, m.again = m.least, 0, 0, 0, 0
	return true
}

// Lost takes in that a probe of size bytes did not get through. That says nothing
// about congestion (RFC 8899, section 3).
func (m *MTU) Lost(size int) {
	if size != m.probing {
		return
	}
	m.probing = 0
	if m.tries++; m.tries >= maxProbes {
		m.tries = 0
		m.bad = min(m.bad, size)
	}
}

// Timeout takes in that the retransmission timer took packets for lost, the
// largest of which had size bytes. What that means shows when the peer answers (Answered); the sender sends a small
// packet, too.
func (m *MTU) Timeout(size int) {
	if size <= m.least {
		return
	}
	if m.holes == 0 || size < m.hole {
		m.hole = size
	}
	m.holes++
}

// TooBig takes in that the kernel, or a router with a message that was checked, allows no
// more than size bytes.
func (m *MTU) TooBig(size int) {
	size = max(size, m.least)
	m.bad = min(m.bad, size+1)
	m.good = min(m.good, size)
	if m.probing > size {
		m.probing, m.tries = 0, 0
	}
}
