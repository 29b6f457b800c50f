package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/hmem"
)

// Applications name device memory (package hmem) by a descriptor besides the address; [Domain.Translate] makes one of
// the two.

// Translate makes the addresses of a vector those of the regions that descs name, of which there are as many: see
// [region.Table.Translate].
func (d *Domain) Translate(iov []fi.IOVec, descs []uint64) error {
	return d.regions.Translate(iov, descs)
}

// hmem reports whether the domain was opened for device memory.
func (d *Domain) hmem() bool { return d.info.Caps&fi.HMEM != 0 }

// scatterDevice is target.scatter where part of the target is device memory.
func (t *target) scatterDevice(payload []byte) (done uint64, err error) {
	n := min(t.room(), uint64(len(payload)))
	if t.flags&hot.RecvIOV == 0 {
		return n, hmem.Store(t.buf, payload[:n])
	}
	for _, v := range vectorAt(t.buf, int(t.len)) {
		part := min(v.Len, n-done)
		if e := hmem.Store(uint64(v.Base), payload[done:done+part]); e != nil {
			err = e
		}
		done += part
	}
	return done, err
}

// storeFailed completes a receive whose message could not be copied to a
// device, and returns the outcome.
func (e *leasedEP) storeFailed(t *target, a *arrived, err error) fi.Errno {
	log.Warnf(log.EPData, "copy %d bytes to a device: %v", a.length, err)
	e.recvError(cq.Entry{
		Context: t.context, Flags: recvKind(t.flags) | t.flags&fi.MultiRecv, Buf: t.buffer(), Data: a.data,
		Tag: a.tag, Src: e.addrOf(a.source),
	}, t.flags, cq.ErrorInfo{Err: fi.EIO})
	return fi.EIO
}
