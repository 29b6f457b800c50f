package verbs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// Memory of other devices, which the kernel hands around as dma-bufs.

// probeDMABuf finds whether the device takes them: it is asked for one of no descriptor, and one that would take
// another says so of the descriptor. The caller opens the domain.
func (d *MemoryDomain) probeDMABuf() {
	m, err := d.pd.RegisterDMABuf(-1, 0, uint64(os.Getpagesize()), 0, ibv.LocalWrite)
	switch {
	case err == nil:
		_ = m.Close() // of nothing
		d.logf("verbs: %s takes no dma-bufs: it takes one without a descriptor", d.dev.Name)
	case errors.Is(err, unix.EBADF):
		d.dmabufs = true
	default:
		d.logf("verbs: %s takes no dma-bufs: %v", d.dev.Name, err)
	}
}

// registerDMABuf registers memory of another device. A device that takes dma-bufs has answered the one without a
// descriptor before, so what it does not support is this one: its exporter lets this device not attach or pin it.
func (d *MemoryDomain) registerDMABuf(b *hw.DMABuf, n uint64, access uint32) (*ibv.MR, error) {
	if !d.dmabufs {
		return nil, hw.ErrNoDMABuf
	}
	m, err := d.pd.RegisterDMABuf(b.FD, b.Offset, n, b.At, access)
	if err != nil && ibv.NoDMABuf(err) {
		return nil, errors.Join(err, hw.ErrNoDMABuf)
	}
	return m, err
}
