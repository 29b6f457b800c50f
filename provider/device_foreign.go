package provider

import (
	"os"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Memory of devices that other processes have registered, mapped by this one.

// The descriptor thread answers about regions.
func init() {
	hmem.Answer(proxy.KindRegion, answerRegion)
	hmem.Answer(proxy.KindCopy, answerCopy)
}

// ipcLimits are how much memory of other processes is mapped at a time.
func (d *Domain) ipcLimits() cuda.Limits {
	return cuda.Limits{Entries: d.cfg.IPCCache, Bytes: uint64(d.cfg.IPCCacheSize)}
}

// exportedAt returns the allocation that n bytes at addr lie in, which others may map from now on. false: they
// cannot.
func (d *Domain) exportedAt(addr, n uint64) (x hmem.Exported, ok bool) {
	if d.cfg.Service == config.No {
		return x, false
	}
	return hmem.ExportedAt(addr, n, d.cfg.PeerTimeout)
}

// shareFor returns the token of the allocation that n bytes at addr lie in, and
// where in it. false: other processes cannot map it.
func (d *Domain) shareFor(addr, n uint64) (token, offset uint64, ok bool) {
	x, ok := d.exportedAt(addr, n)
	return x.Token, addr - x.Base, ok
}

// deviceRTS completes the RTS of a message in device memory.
func (e *peering) deviceRTS(r *wire.RTS, s *SendArgs, p *path) {
	r.Flags |= wire.FlagNoGet
	least := uint64(e.domain.cfg.HMEMMapSize)
	if len(s.IOV) != 1 || p.port.attr.Caps&hw.CapPeerMemory == 0 || least == 0 || r.Length < least ||
		e.p2p.Load() == fi.HMEMP2PDisabled {
		return
	}
	if token, offset, ok := e.domain.shareFor(uint64(s.IOV[0].Base), r.Length); ok {
		r.Flags |= wire.FlagShared
		r.IOV[0].Addr, r.Token, r.PID = offset, token, uint32(os.Getpid())
	}
}

// driverError is the outcome of a copy that the driver of a device failed: the allocation may have gone with its
// owner's process, of which the driver says nothing.
func driverError(owner proc.Process) fi.Errno {
	if owner.Ending() {
		return fi.ECONNRESET
	}
	return fi.EIO
}
