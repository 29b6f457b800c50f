package provider

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/provider/hmem"
)

// hmem reports whether the domain was opened for device memory.
func (d *Domain) hmem() bool { return d.info.Caps&fi.HMEM != 0 }

// Info is what the domain was opened with; not to be changed.
func (d *Domain) Info() *fi.Info { return d.info }

// Domain is the domain that the endpoint belongs to.
func (e *attributes) Domain() *Domain { return e.domain }

// Domain is the domain that the context belongs to.
func (s *SharedRx) Domain() *Domain { return s.domain }

// appParts is what the application calls the region's memory.
func (m *MR) appParts() []fi.IOVec {
	if m.named != nil {
		return m.named
	}
	return m.parts
}

// enterMemory takes in what attr says of the kind of memory: for memory of a device it
// sets parts, named and shares.
func (m *MR) enterMemory(attr *fi.MRAttr, flags uint64) error {
	if flags&fi.MRDMABuf != 0 {
		return m.enterDMABuf(attr)
	}
	switch attr.Iface {
	case fi.HMEMSystem:
		if flags&(fi.HMEMDeviceOnly|fi.HMEMHostAlloc) != 0 {
			return fmt.Errorf("flags %#x for memory of the process itself: %w", flags, fi.EINVAL)
		}
		return nil
	case fi.HMEMCUDA:
		if err := cuda.Load(); err != nil {
			return fmt.Errorf("%v: %w", err, fi.ENOSYS)
		}
		if flags&fi.HMEMHostAlloc != 0 {
			return nil // the processor reads and writes it
		}
		return m.enterCUDA(int(int32(attr.Device)))
	}
	return fmt.Errorf("memory interface %d: %w", attr.Iface, fi.ENOSYS)
}

func (m *MR) enterDMABuf(attr *fi.MRAttr) error {
	if len(attr.IOV) > 1 {
		return fmt.Errorf("%d dma-bufs, one is possible: %w", len(attr.IOV), fi.EINVAL)
	}
	b, part, err := hmem.Register(attr.DMABuf, m.access&(fi.Recv|fi.Read|fi.RemoteWrite) != 0)
	if err != nil {
		return err
	}
	m.dmabuf = b
	m.parts = []fi.IOVec{part}
	m.named = []fi.IOVec{{Base: attr.DMABuf.Base + uintptr(attr.DMABuf.Offset), Len: part.Len}}
	m.shares = []*hmem.Share{b.Share(m.domain.cfg.PeerTimeout)}
	return nil
}

func (m *MR) enterCUDA(device int) error {
	parts := slices.Clone(m.parts)
	special := false
	for i, v := range parts {
		addr, err := cuda.Register(uint64(v.Base), v.Len, device)
		if err != nil {
			m.leaveMemory()
			return fmt.Errorf("%d bytes at %#x: %v: %w", v.Len, v.Base, err, fi.EINVAL)
		}
		parts[i].Base = uintptr(addr)
		if !hmem.OnDevice(addr) {
			continue
		}
		special = true
		base, size, err := cuda.Allocation(addr)
		if err != nil {
			m.leaveMemory()
			return fmt.Errorf("%d bytes at %#x: %v: %w", v.Len, v.Base, err, fi.EINVAL)
		}
		buffer, err := cuda.Buffer(addr)
		if err != nil {
			m.leaveMemory()
			return fmt.Errorf("%d bytes at %#x: %v: %w", v.Len, v.Base, err, fi.EINVAL)
		}
		m.shares = append(m.shares, hmem.Enter(base, size, buffer, m.domain.cfg.PeerTimeout))
	}
	if special {
		m.parts, m.named = parts, m.parts
	}
	return nil
}

// leaveMemory undoes enterMemory. When it returns no other process has the memory mapped, or the time limit of
// peers is over.
func (m *MR) leaveMemory() {
	for _, s := range m.shares {
		s.Leave(m.domain.cfg.PeerTimeout)
	}
	m.shares = nil
	if m.dmabuf != nil {
		m.dmabuf.Close()
	}
}
