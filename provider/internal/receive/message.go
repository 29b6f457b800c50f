package receive

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// message is a message at the moment of its arrival or delivery.
type message struct {
	at      *Endpoint // where it arrived
	from    links.Sender
	src     hw.Source
	tag     uint64
	data    uint64
	length  uint64 // bytes of the whole message
	request uint64 // the sender's, for the acknowledgement
	flags   uint64 // msg* bits
}

// Bits of message.flags and match.Message.Flags; the latter has the source and
// the number of the endpoint above them.
const (
	msgTagged uint64 = hot.MessageTagged
	msgData   uint64 = hot.MessageData        // data is valid
	msgRTS    uint64 = dataplane.MessageRTS   // the payload is with the sender: Payload is the address of an rts
	msgSync   uint64 = dataplane.MessageSync  // the sender waits for an acknowledgement
	msgMatch  uint64 = dataplane.MessageMatch // until a receive has matched
)

// flagsOf are the flags of a message of which the head has flags of the wire.
func flagsOf(kind uint64, head uint32) uint64 {
	if head&wire.FlagTagged != 0 {
		kind |= msgTagged
	}
	if head&wire.FlagData != 0 {
		kind |= msgData
	}
	return kind
}

// untilHere reports whether the sender waits until the message is here, and no longer.
func (a *message) untilHere() bool { return a.flags&(msgSync|msgMatch) == msgSync }

// awaited reports whether the sender waits for an acknowledgement.
func (a *message) awaited() bool { return a.flags&(msgRTS|msgSync) != 0 }

// ack sends the message's sender the ACK, with the outcome.
func (a *message) ack(status fi.Errno) {
	a.at.host.Answer(a.src, a.from, wire.AMAck, a.request, wire.PutAck(a.at.rx.head[:], status))
}

// keptEndpoint and keptSource return where an unexpected message came from: an endpoint's number, and its source.
func keptEndpoint(m *match.Message) uint32 {
	return uint32(m.Flags >> dataplane.UnexpectedEndpointShift)
}

func keptSource(m *match.Message) hw.Source {
	return hw.Source(m.Flags >> dataplane.UnexpectedSourceShift & 0xffffff)
}

// keptSender returns the sender of an unexpected message.
func keptSender(m *match.Message) links.Sender {
	return links.Sender{ID: m.Source(), Number: uint8(m.Flags >> dataplane.UnexpectedNumberShift)}
}

// keptFlags is what match.Message.Flags keeps of a message.
func keptFlags(a *message) uint64 {
	return a.flags | uint64(a.src)<<dataplane.UnexpectedSourceShift |
		uint64(a.from.Number)<<dataplane.UnexpectedNumberShift |
		uint64(a.at.number)<<dataplane.UnexpectedEndpointShift
}

// unexpectedAs returns an unexpected message as it was when it arrived.
func (c *Context) unexpectedAs(m *match.Message) message {
	return message{
		at: c.byNumber(keptEndpoint(m)), from: keptSender(m), src: keptSource(m), tag: m.Tag(), data: m.Data,
		length: m.Len, request: m.Request, flags: m.Flags & (1<<dataplane.UnexpectedSourceShift - 1),
	}
}

// targetOf is the target of a receive on the post ring, targetIn of one in matching.
func targetOf(entry *hot.RecvEntry) target.Target {
	return target.Target{Buf: entry.Buf, Len: entry.Len, Context: entry.Context, Flags: entry.Flags}
}

func targetIn(rv *match.Recv) target.Target {
	return target.Target{Buf: rv.Buf, Len: rv.Len, Context: rv.Context, Flags: rv.Flags}
}
