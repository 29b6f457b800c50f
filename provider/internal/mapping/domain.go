package mapping

import (
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// Domain is what a domain has of mappings: those that it makes of other processes' memory, and what it lets others
// map. Its methods may be called from any thread.
type Domain struct {
	process  Process // immutable
	importer hmem.Importer
	cfg      *config.Config // immutable
	device   bool           // the domain was opened for memory of devices; immutable
}

// Init makes it that of a domain of this process, which was opened for memory of devices or not.
func (d *Domain) Init(p Process, cfg *config.Config, device bool) {
	d.process, d.cfg, d.device = p, cfg, device
}

// limits are how much memory of other processes is mapped at a time.
func (d *Domain) limits() cuda.Limits {
	return cuda.Limits{Entries: d.cfg.IPCCache, Bytes: uint64(d.cfg.IPCCacheSize)}
}

// Offer lets peers on this host ask to map the region of a key, if it is a device's, and else for copies between it and
// memory of a device of theirs.
func (d *Domain) Offer(key uint64) {
	if !d.device || d.cfg.HMEMMapSize == 0 || d.cfg.Service == config.No {
		return
	}
	if err := d.importer.Enter(); err != nil {
		log.Infof(log.MR, "peers reach region %#x, or memory of devices from it, by messages: %v", key, err)
	}
}

// Fetch begins to map memory of another process; see [hmem.Importer.Fetch].
func (d *Domain) Fetch(a cuda.Foreign, near uint64, device bool, then func()) *hmem.Memory {
	return d.importer.Fetch(a, d.limits(), near, device, then)
}

// Exported returns the allocation that n bytes at addr lie in, which others may map from now on. false: they cannot.
func (d *Domain) Exported(addr, n uint64) (x hmem.Exported, ok bool) {
	if d.cfg.Service == config.No {
		return x, false
	}
	return hmem.ExportedAt(addr, n, d.cfg.PeerTimeout)
}

// Share returns the token of the allocation that n bytes at addr lie in, and where in it. false: other processes cannot
// map it.
func (d *Domain) Share(addr, n uint64) (token, offset uint64, ok bool) {
	x, ok := d.Exported(addr, n)
	return x.Token, addr - x.Base, ok
}

// Leave ends the mappings of the domain, which closes.
func (d *Domain) Leave() { d.importer.Leave() }
