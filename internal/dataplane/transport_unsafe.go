package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// Messages of other hosts, at a transport that the data plane polls (hot.Transport, a driven transport). The shim calls
// the backend's functions; the backend reports by TransportGo what only the runtime can deal with.

// askTransport has the shim ask the transport of the endpoint at hand for a message.
func askTransport(p *hot.Poll, ep *hot.EP) uintptr {
	p.Step = stepTransportFound
	if atomic.LoadUint32(&ep.TransportActive) != 0 {
		return hot.PollNext
	}
	return hot.PollSilent
}

// serveTransport goes on with the messages of the transport.
func serveTransport(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if t := matchOf(ep); t != nil {
		if p.Step == stepTransportEnd {
			return roundEnded(p, rx)
		}
		return serveMatched(p, ep, rx, t)
	}
	switch p.Step {
	case stepTransportFound:
		if p.Answer == hot.TransportGo {
			p.ToGo = 1
		}
		if p.Answer != hot.TransportArrival {
			return endTransport(p, ep, rx)
		}
		code := acceptTransport(&p.Delivery, &p.Message)
		if code == hot.DeliveryGo {
			p.ToGo = 1
			return endTransport(p, ep, rx)
		}
		p.Messages++
		if code != hot.DeliveryDone {
			p.Step = stepTransportGiven
			return code
		}
		fallthrough
	case stepTransportGiven:
		behindOlder(&p.Delivery)
		p.Step = stepTransportTaken
		return hot.PollTake
	case stepTransportTaken:
		// without another one at hand: a thread that waits for this one has it sooner without asking the device again
		if p.Answer == 0 || p.Messages >= batch || p.Delivery.Reader != 0 && p.Reader.Left == 0 {
			return endTransport(p, ep, rx)
		}
		return askTransport(p, ep)
	}
	return transportEnded(p, ep, rx)
}

// endTransport ends the messages of the transport.
func endTransport(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	p.Step = stepTransportEnd
	if wakes(&p.Delivery, ep) {
		return hot.PollWake
	}
	return transportEnded(p, ep, rx)
}

func transportEnded(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if p.Messages != 0 {
		p.Found = 1
	}
	if p.ToGo != 0 || p.Delivery.Todo&hot.TodoTriggered != 0 {
		return leaveToGo(p, rx)
	}
	return behindTransport(p, ep, rx)
}

// behindTransport does what else there is to do at an endpoint with a transport.
func behindTransport(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if firstArrived(ep, ringsInUse(ep)) || laterArrived(ep) || PostsAreWork(rx) {
		return deliverRings(p, ep)
	}
	unlease(p, rx)
	return next
}

// acceptTransport takes in one message of the endpoint's transport to other hosts, and returns DeliveryDone, Go, Settle
// or Complete.
func acceptTransport(d *hot.Delivery, m *hot.TransportMessage) uintptr {
	ep := endpoint(d.EP)
	r := ReceiverOf(context(ep))
	if r == nil || ep.Flags&hot.EPMatches == 0 || m.Source >= ep.SourceLimit || m.ID < hot.AMMsg || m.ID > hot.AMTagData {
		return hot.DeliveryGo
	}
	src := (*hot.TransportSource)(pointer(ep.TransportSources + uintptr(m.Source)*unsafe.Sizeof(hot.TransportSource{})))
	addr := atomic.LoadUint64(&src.Addr)
	if addr == hot.SenderUnknown {
		return hot.DeliveryGo
	}
	d.ID, d.Number, d.Source, d.Addr, d.Flags, d.Data = src.ID, src.Context, src.Source, addr, 0, 0
	d.Tag, d.Length, d.Payload = m.Header, uint64(m.Length), uint64(m.Payload)
	if m.ID >= hot.AMTag {
		d.Flags = hot.MessageTagged
	}
	head := uint16(0)
	if (m.ID-hot.AMMsg)&1 != 0 {
		head = 8
		d.Flags |= hot.MessageData
	}
	if m.HeadBytes != head {
		return hot.DeliveryGo
	}
	if head != 0 {
		move(uintptr(unsafe.Pointer(&d.Data)), m.Head, 8)
	}
	switch r.Accept(ep, d) {
	case Delivered, Unexpected:
		countTransport(d, ep)
	case Complete:
		countTransport(d, ep)
		return hot.DeliveryComplete
	case Settle:
		return hot.DeliverySettle
	case Refused:
		return hot.DeliveryGo
	}
	return hot.DeliveryDone
}

// countTransport counts the message at hand, which is delivered or kept.
func countTransport(d *hot.Delivery, ep *hot.EP) {
	countDirect(ep, 1, d.Length)
}
