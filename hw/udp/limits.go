package udp

import (
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// What strangers and peers can cause is bounded by these.
const (
	// maxHalfOpen bounds the connections of one stripe that were accepted and
	// have not been used yet by their clients. The oldest gives way.
	maxHalfOpen = 256
	// halfOpenLife is how long such a connection is kept.
	halfOpenLife = 5 * time.Second
	// answers to strangers (Retry, Accept, Reset) per second and stripe, and at once.
	answerRate  = 20000
	answerBurst = 512
	// maxHoles bounds the separate pieces of stream that a receiver keeps.
	maxHoles = 512
	// receiveBatches bounds the system calls of one poll of a socket.
	receiveBatches = 8
	// hints is how many Resets or ICMP messages make an authenticated peer that
	// has not answered since the first of them dead, and hintTime how long that
	// takes at least.
	hints    = 3
	hintTime = 50 * time.Millisecond
)

// Timing of the protocol.
const (
	// ackHold is how long an acknowledgement waits for something to go with.
	ackHold = time.Millisecond

	// quickAsks is within what time of one another packets ask for acknowledgements
	// that the next is expected before the acknowledgement is due.
	quickAsks = ackHold / 4

	// quickRow is how many of them in a row show that it is expected.
	quickRow = 16
	// ackEvery is how many packets at most wait for one acknowledgement. A sender that waits
	// for one asks for it: a full window of congestion control, a put's last packet. An
	// acknowledgement costs both sides a system call, as much as 64 KiB take to be
	// copied, so they are not sent for each few packets of what is on its way: 128
	// are a sixth of the default window. (64 cost two hundredths of the bandwidth.)
	ackEvery = 128
	// dialFirst is the first wait for an answer to an Init; it doubles to dialMost.
	dialFirst = 20 * time.Millisecond
	dialMost  = 250 * time.Millisecond
	// dialForget is how long after the last Connect an attempt goes on.
	dialForget = 5 * time.Second
	// closeRepeat is how often a Close frame is sent again without an answer.
	closeRepeat = 5
)

// Sizes.
const (
	minPacket = wire.MinPacket
	maxPacket = wire.MaxPacket
	// maxShort is head and payload of AMShort: what the ring slot of the
	// shared-memory backend takes, so that neither decides for the other.
	maxShort = 104
	// maxHead is the head of AMBcopy.
	maxHead = 96
	// recordHeader begins a record in the stream.
	recordHeader = 16
	// recordAlign is what records are rounded up to.
	recordAlign = 8
)
