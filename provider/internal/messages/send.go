package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Send describes one message.
type Send struct {
	IOV     []fi.IOVec // its memory
	Dest    fi.Addr
	Tag     uint64
	Data    uint64
	Flags   uint64 // of this operation
	Context uint64
	Work    uint64 // the number of the deferred work that it is, or 0
	Thread  uint32 // the posting thread's number, 0 for goroutines: the completions of a thread use one ring
	Tagged  bool
	HasData bool // Data goes with the message
	Inject  bool // it never completes

	reported bool // its success is reported already: it writes no completion
}

// sendFlags are the flags that a message may carry.
const sendFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete |
	fi.DeliveryComplete | fi.MatchComplete | fi.RemoteCQData | fi.Fence | fi.Priority

// ackFlags ask for an acknowledgement by the receiver.
const ackFlags = fi.DeliveryComplete | fi.MatchComplete

// Limits are the longest messages of a kind that may be posted, in bytes.
type Limits struct {
	Most   uint64
	Inject uint64 // of one that is injected
}

// Check validates the arguments and returns the message's length in bytes. Errors: fi.EBADFLAGS; fi.EINVAL for too many
// elements, ones without memory, and what is too long to inject; fi.EMSGSIZE.
func (m *Send) Check(l Limits) (total uint64, err error) {
	if m.Flags&^sendFlags != 0 {
		return 0, log.Reject(log.EPData, fi.EBADFLAGS, "send: flags %#x are not for a transmit", m.Flags&^sendFlags)
	}
	if len(m.IOV) > wire.IOVLimit {
		return 0, log.Reject(log.EPData, fi.EINVAL, "send: %d elements, at most %d", len(m.IOV), wire.IOVLimit)
	}
	for _, v := range m.IOV {
		if v.Len > wire.MaxMessage || hmem.Nowhere(v) {
			return 0, log.Reject(log.EPData, fi.EINVAL, "send: element of %d bytes at %#x", v.Len, v.Base)
		}
		total += v.Len
	}
	if total > l.Most {
		return 0, log.Reject(log.EPData, fi.EMSGSIZE, "send: %d bytes, at most %d", total, l.Most)
	}
	if m.injects() && total > l.Inject {
		return 0, log.Reject(log.EPData, fi.EINVAL, "inject: %d bytes, at most %d", total, l.Inject)
	}
	hmem.Touch(m.IOV)
	return total, nil
}

// ring is the ring of the queue that the message completes on, as one that the data plane posts: that of the stripe
// that its thread prefers, also where another stripe is leased.
func (m *Send) ring(ep *hot.EP) int { return 1 + int(m.Thread&ep.StripeMask) }

// injects reports whether the caller may reuse the message's memory at once.
func (m *Send) injects() bool { return m.Inject || m.Flags&fi.Inject != 0 }

// onDevice reports whether part of the message is in memory of a device.
func (m *Send) onDevice() bool { return hmem.AnyOnDevice(m.IOV) }

// tracked reports whether the message, sent with its payload over p, completes, or is counted, when its receiver
// acknowledges it. One that stands in the receiver's ring has left the sender; one that a transport keeps to send it
// again would be lost with the process.
func (m *Send) tracked(p *links.Path) bool {
	return m.Flags&ackFlags != 0 || m.Flags&fi.TransmitComplete != 0 && p.Via.Attr.Caps&hw.CapDirectRing == 0
}

// wireBits are the flags of an RTS or of a wire.AMSync for the message.
func (m *Send) wireBits() uint32 {
	flags := dataplane.RTSFlags(m.Tagged, m.HasData)
	if m.Flags&fi.MatchComplete != 0 {
		flags |= wire.FlagMatch
	}
	return flags
}
