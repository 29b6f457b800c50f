package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
)

// ReadError takes the error that is next on a completion queue (fi_cq_readerr), if its entry says all that there is to
// say: as a search's that found nothing does, of which an application that probes for messages has many. queue is the
// address of a hot.CQ, to that of a struct fi_cq_err_entry whose err_data and err_data_size are the application's. The
// result is hot.DeliveryDone or hot.DeliveryGo: it is another error, or there is none.
func ReadError(queue, to, _, _ uintptr) uintptr {
	q := (*hot.CQ)(pointer(queue))
	r, ok := cqring.NextError(q)
	if !ok {
		return hot.DeliveryGo
	}
	pos, ok := r.TakeError(cqring.Exclusive(q), true)
	if !ok {
		return hot.DeliveryGo
	}
	e, out := r.At(pos), (*errorEntry)(pointer(to))
	err, provErrno := cqring.OfBrief(e.Src)
	out.context, out.flags, out.len, out.buf = e.Context, e.Flags&^hot.CQEError, e.Len, 0
	out.data, out.tag, out.olen = e.Data, e.Tag, 0
	out.err, out.provErrno = err, provErrno
	if out.errDataSize == 0 {
		out.errData = 0
	}
	out.errDataSize = 0
	r.Release(pos)
	return hot.DeliveryDone
}

const _ = uint(80-unsafe.Sizeof(errorEntry{})) + uint(unsafe.Sizeof(errorEntry{})-80)

// errorEntry is a struct fi_cq_err_entry, without what later versions append.
type errorEntry struct {
	context, flags, len, buf, data, tag, olen uint64
	err, provErrno                            int32
	errData, errDataSize                      uint64
}
