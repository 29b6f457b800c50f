package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// Messages of other hosts, at a port that the data plane polls (hot.Port, a driven port). The shim calls the backend's
// functions; the backend reports by PortGo what only the runtime can deal with.

// askPort has the shim ask the port of the endpoint at hand for a message.
func askPort(p *hot.Poll, ep *hot.EP) uintptr {
	p.Step = stepPortFound
	if atomic.LoadUintptr(&ep.Match) != 0 {
		return hot.PollMatch
	}
	if atomic.LoadUint32(&ep.PortActive) != 0 {
		return hot.PollNext
	}
	return hot.PollSilent
}

// servePort goes on with the messages of the port.
func servePort(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if e := matchedOf(ep); e != nil && p.Step != stepPortEnd {
		return serveMatched(p, ep, rx, e)
	}
	switch p.Step {
	case stepPortFound:
		if p.Answer == hot.PortGo {
			p.ToGo = 1
		}
		if p.Answer != hot.PortArrival {
			return endPort(p, ep, rx)
		}
		code := acceptPort(&p.Delivery, &p.Message)
		if code == hot.DeliveryGo {
			p.ToGo = 1
			return endPort(p, ep, rx)
		}
		p.Messages++
		if code != hot.DeliveryDone {
			p.Step = stepPortGiven
			return code
		}
		fallthrough
	case stepPortGiven:
		p.Step = stepPortTaken
		return hot.PollTake
	case stepPortTaken: // without another one at hand: a thread that waits for this one has it sooner without asking the device again
		if p.Answer == 0 || p.Messages >= batch || p.Delivery.Reader != 0 && p.Reader.Left == 0 {
			return endPort(p, ep, rx)
		}
		return askPort(p, ep)
	}
	return portEnded(p, ep, rx)
}

// endPort ends the messages of the port.
func endPort(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	p.Step = stepPortEnd
	if wakes(&p.Delivery, ep) {
		return hot.PollWake
	}
	return portEnded(p, ep, rx)
}

func portEnded(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if p.Messages != 0 {
		p.Found = 1
	}
	if p.ToGo != 0 || p.Delivery.Todo&hot.TodoTriggered != 0 {
		return leaveToGo(p, rx)
	}
	return behindPort(p, ep, rx)
}

// behindPort does what else there is to do at an endpoint with a port.
func behindPort(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if firstArrived(ep, ringsInUse(ep)) || laterArrived(ep) || PostsAreWork(rx) {
		return deliverRings(p, ep)
	}
	unlease(p, rx)
	return next
}

// acceptPort takes in one message of the endpoint's port to other hosts, and returns DeliveryDone, Go, Settle or
// Complete.
func acceptPort(d *hot.Delivery, m *hot.PortMessage) uintptr {
	ep := endpoint(d.EP)
	r := ReceiverOf(context(ep))
	if r == nil || ep.Flags&hot.EPMatches == 0 || m.Source >= ep.SourceLimit || m.ID < hot.AMMsg || m.ID > hot.AMTagData {
		return hot.DeliveryGo
	}
	src := (*hot.PortSource)(pointer(ep.PortSources + uintptr(m.Source)*unsafe.Sizeof(hot.PortSource{})))
	addr := atomic.LoadUint64(&src.Addr)
	if addr == 0 {
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
		countPort(d, ep)
	case Complete:
		countPort(d, ep)
		return hot.DeliveryComplete
	case Settle:
		return hot.DeliverySettle
	case Refused:
		return hot.DeliveryGo
	}
	return hot.DeliveryDone
}

// countPort counts the message at hand, which is delivered or kept.
func countPort(d *hot.Delivery, ep *hot.EP) {
	countDirect(ep, 1, d.Length)
}
