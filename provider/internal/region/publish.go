package region

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/pages"
)

// Publisher is where a domain's regions become known: to a transport, by which peers on this host reach them without
// this process, and to the data plane. All fields are immutable.
type Publisher struct {
	Memory hw.MemoryDomain // of the transport, nil: none
	Auth   authkey.Key     // the domain's
	Mapped bool            // processes of this host map each other's memory of devices
	// Allocated: the application has promised that the pages of its regions are there and stay (FI_MR_ALLOCATED), so
	// that a device uses them without asking the process.
	Allocated bool
	HugeLeast uint64 // bytes from which on a region is put on huge pages, 0: none is
}

// publication is what is known of a region elsewhere.
type publication struct {
	mu        sync.Mutex   // control operations only
	memory    [2]hw.Memory // what the transport knows of it by its key and by the alias, nil: nothing
	direct    bool         // the data plane accesses it
	exported  hw.Memory    // the registration with a device, nil: none
	withdrawn bool         // peers may not reach it but by messages
}

// Publish makes a region known under its key, if peers may reach it and what they do there need not be known.
func (r *Region[O]) Publish(p *Publisher, key uint64) {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if !r.publishAs(p, 0, key) {
		return
	}
	if p.HugeLeast != 0 && r.Length >= p.HugeLeast {
		n := pages.Move(uint64(r.Memory.Parts[0].Base), r.Length)
		log.Infof(log.MR, "region %#x: %d of %d bytes are on huge pages", key, n, r.Length)
	}
	r.known.direct = true
	r.table.openDirect(key, r)
}

// PublishAlias makes a region known under its alias, too.
func (r *Region[O]) PublishAlias(p *Publisher, alias uint64) {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if r.publishAs(p, 1, alias) {
		r.known.direct = true
		r.table.openDirect(alias, r)
	}
}

// publishAs makes a region known to the transport under a key, if it has room, and reports whether the data plane may
// access it. Neither does where what peers do there must be known. The caller has mu.
func (r *Region[O]) publishAs(p *Publisher, which int, key uint64) bool {
	if p.Memory == nil || r.known.withdrawn || !r.Remote() || !r.Unattended(p.Auth) {
		return false
	}
	h := r.HW()
	h.Name, h.Named = key, true
	if r.OnDevice() {
		if !p.Mapped {
			return false
		}
		h.Addr, h.Device = nil, true
	}
	m, err := p.Memory.Register(h)
	if err != nil {
		log.Infof(log.MR, "region %#x is reached by messages only: %v", key, err)
	} else {
		r.known.memory[which] = m
	}
	return !r.OnDevice()
}

// Withdraw takes a region back for good, and waits for peers that are at it: they reach it by messages only. For
// control operations on the region.
func (r *Region[O]) Withdraw() {
	k := &r.known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.withdrawn = true
	if k.direct {
		k.direct = false
		r.table.closeDirect(r)
	}
	k.hide()
	k.unexport(r.key)
}

// Hide has peers not ask any more where the memory of a region, a device's, is.
func (r *Region[O]) Hide() {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	r.known.hide()
}

// hide takes the region back from the transport. The caller has mu.
func (k *publication) hide() {
	for i, m := range k.memory {
		if m != nil {
			_ = m.Close()
			k.memory[i] = nil
		}
	}
}

// Export registers a region with a device's memory domain, unless it is, and appends the device's key. nil: it is not
// for devices, because what peers do there must be known, not all peers may reach it, there is nothing, its memory is
// another device's that this one does not reach, the application has not promised that its pages stay, or the device
// has no room. lasts: no other region gets the key, so that peers may keep it longer than the region is there. The
// caller has entered the gate.
func (r *Region[O]) Export(p *Publisher, md hw.MemoryDomain, to []byte) (key []byte, lasts bool) {
	k := &r.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.exported == nil {
		if k.withdrawn || !r.Unattended(p.Auth) || !r.OnDevice() && !p.Allocated {
			return nil, false
		}
		m, err := r.registerWith(md)
		if err != nil {
			log.Infof(log.MR, "region %#x is reached by messages only: %v", r.key, err)
			return nil, false
		}
		k.exported = m
	}
	if m, ok := k.exported.(hw.Lasting); ok {
		lasts = m.Keep()
	}
	return k.exported.PackKey(to), lasts
}

// registerWith registers the region with a device's memory domain, by its dma-buf if it is another device's memory.
func (r *Region[O]) registerWith(md hw.MemoryDomain) (hw.Memory, error) {
	h := r.HW()
	if !r.OnDevice() {
		return md.Register(h)
	}
	if md.Attr().Caps&hw.MDDMABuf == 0 {
		return nil, hw.ErrNoDMABuf
	}
	d, err := r.Memory.InDMABuf()
	if err != nil {
		return nil, fmt.Errorf("export the memory: %w", err)
	}
	defer unix.Close(d.FD)
	h.DMABuf = &d
	return md.Register(h)
}

// Unexport takes a region back from devices: what peers do there with a key that they have fails, and they ask for
// another.
func (r *Region[O]) Unexport() {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	r.known.unexport(r.key)
}

// unexport ends the registration with the device. The caller has mu.
func (k *publication) unexport(key uint64) {
	if k.exported == nil {
		return
	}
	if err := k.exported.Close(); err != nil {
		log.Warnf(log.MR, "take region %#x back from the device: %v", key, err)
	}
	k.exported = nil
}
