package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
)

// Posting a message to another host over a driven transport: the shim calls the backend's function (hot.Path).

// sendPath has a message to another host sent by the backend's own function, if polls include the transport of this
// very endpoint: then answers are found, and corked messages are sent. Else the runtime posts it, and has polls include
// the transport. That polls include the transport of another endpoint with the same receive context does not suffice:
// they may end before what is corked here is sent.
func sendPath(p *hot.Post, ep *hot.EP, line uint64) uintptr {
	if ep.Paths == 0 {
		return hot.PostGo
	}
	at := atomic.LoadUintptr((*uintptr)(pointer(ep.Paths + uintptr(line)*8)))
	path := (*hot.Path)(pointer(at))
	if path == nil || p.Len+uint64(headBytes(p, messageID(p))) > uint64(path.Max) || p.Flags&fi.TransmitComplete != 0 ||
		atomic.LoadUint32(&ep.TransportActive) == 0 {
		return hot.PostGo
	}
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	p.Path, p.Step = at, stepSent
	m := &p.Message
	m.Header, m.Head, m.HeadBytes, m.Payload, m.Length = p.Header, 0, 0, p.Buf, uint32(p.Len)
	if m.ID = messageID(p); p.Kind&hot.PostData != 0 {
		m.Head, m.HeadBytes = uintptr(unsafe.Pointer(&p.Data)), uint16(unsafe.Sizeof(p.Data))
	}
	m.Hold = uint8(mayHold(p, ep, &e))
	return hot.PostPath
}

// mayHold reports whether a message to another host may be corked until the next read of the queue that it completes on
// (hot.Hold*): the application that waits for its completion sends it by that read.
func mayHold(p *hot.Post, ep *hot.EP, e *place) uint32 {
	q := e.queue()
	if q == nil || ep.TxCntr != 0 || !cqring.Exclusive(q) || context(ep).Flags&hot.RxExclusive == 0 {
		return hot.HoldNever
	}
	if p.Flags&fi.More != 0 {
		return hot.HoldMore
	}
	return hot.HoldInRow
}

// sentPath goes on after the backend's function.
func sentPath(p *hot.Post, ep *hot.EP) uintptr {
	switch p.Sent {
	case hot.PathGo:
		return hot.PostGo
	case hot.PathFull:
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	var e place
	e.find(p, ep)
	if p.Sent == hot.PathCorked {
		order.Store32(&e.queue().Corked, 1)
	}
	countPost(p, ep, stats.ThreadInline, 1)
	countPost(p, ep, stats.ThreadInlineBytes, p.Len)
	e.complete(p, ep.TxCntr, fi.Send|kindFlag(p), p.Len)
	return hot.PostDone
}
