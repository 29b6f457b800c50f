package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// AcceptPort takes in one message of the endpoint's port to other hosts, and returns DeliveryDone, Go, Settle or
// Complete. d is the address of a hot.Delivery in which the shim has set EP, Reader, and of the message Source, the
// port's number for its sender, Payload, Length, Tag, Data and Flags. The caller holds the progress lease.
func AcceptPort(d, _, _, _ uintptr) uintptr { return acceptPort((*hot.Delivery)(pointer(d))) }

func acceptPort(d *hot.Delivery) uintptr {
	ep := endpoint(d.EP)
	r := ReceiverOf(context(ep))
	if r == nil || ep.Flags&hot.EPMatches == 0 || d.Source >= ep.SourceLimit {
		return hot.DeliveryGo
	}
	src := (*hot.PortSource)(pointer(ep.PortSources + uintptr(d.Source)*unsafe.Sizeof(hot.PortSource{})))
	addr := atomic.LoadUint64(&src.Addr)
	if addr == 0 {
		return hot.DeliveryGo
	}
	a := Arrival{
		ID: src.ID, Number: src.Context, Source: src.Source, Flags: d.Flags, Addr: addr, Tag: d.Tag, Data: d.Data,
		Length: d.Length, Payload: uintptr(d.Payload),
	}
	out := Outlet{Reader: reader(d)}
	verdict := r.Accept(ep, &a, &out)
	d.Todo |= out.Todo
	switch verdict {
	case Delivered, Complete, Held:
		stat(ep, stats.RxDirect, 1)
		stat(ep, stats.RxDirectBytes, a.Length)
		stat(ep, stats.RxDirectBatches, 1)
		if verdict == Complete {
			d.Entry = out.Entry
			return hot.DeliveryComplete
		}
	case Settle:
		describe(d, &a, out.Recv)
		return hot.DeliverySettle
	case Refused:
		return hot.DeliveryGo
	}
	return hot.DeliveryDone
}
