package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/target"
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

// storeFailed completes a receive whose message could not be copied to a
// device, and returns the outcome.
func (e *leasedEP) storeFailed(t *target.Target, a *arrived, err error) fi.Errno {
	log.Warnf(log.EPData, "copy %d bytes to a device: %v", a.length, err)
	e.ep.base.recvError(cq.Entry{
		Context: t.Context, Flags: recvKind(t.Flags) | t.Flags&fi.MultiRecv, Buf: t.Named(), Data: a.data,
		Tag: a.tag, Src: e.addrOf(a.source),
	}, t.Flags, cq.ErrorInfo{Err: fi.EIO})
	return fi.EIO
}
