package loopback

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
)

// One-sided operations are done by the caller before they return: the kernel
// copies to or from the peer's memory. Without cross-memory attach they give
// hw.ErrPermission.

// oneSided performs one operation with one of the two system calls.
func (e *Endpoint) oneSided(local []hw.Segment, addr uint64, key hw.RemoteKey, call uintptr) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	right, n := uint32(hot.KeyRead), uint64(0)
	if call == unix.SYS_PROCESS_VM_WRITEV {
		right = hot.KeyWrite
	}
	for _, s := range local {
		if s.Len < 0 || uint64(s.Len) > maxOneSided {
			return fmt.Errorf("loopback: local segment of %d bytes: %w", s.Len, hw.ErrInvalid)
		}
		n += uint64(s.Len)
	}
	if n > maxOneSided {
		return hw.ErrTooLong
	}
	c, at, err := e.claim(key, addr, n, right)
	if err != nil {
		return err
	}
	remote := [1]hw.RemoteSegment{{Addr: at, Len: n}}
	_, err = e.transfer(local, remote[:], call)
	outbound.Release(c)
	return err
}

// PutShort writes data.
func (e *Endpoint) PutShort(data []byte, addr uint64, key hw.RemoteKey) error {
	if len(data) > rawChunk {
		return hw.ErrTooLong
	}
	return e.oneSided([]hw.Segment{segmentOf(data)}, addr, key, unix.SYS_PROCESS_VM_WRITEV)
}

// PutBcopy packs into a bounce buffer of the stripe and writes from there.
func (e *Endpoint) PutBcopy(n int, pack func([]byte), addr uint64, key hw.RemoteKey, stripe int) error {
	i := e.iface
	if n < 0 || stripe < 0 || stripe >= i.cfg.Stripes {
		return fmt.Errorf("loopback: put of %d bytes, stripe %d of %d: %w", n, stripe, i.cfg.Stripes, hw.ErrInvalid)
	}
	if n > int(i.seg.geo.bounceBytes) {
		return hw.ErrTooLong
	}
	if err := e.ready(); err != nil {
		return err
	}
	b, _ := outbound.FreeBounce(i.stripes[stripe])
	if b == nil {
		return hw.ErrNoResource
	}
	pack(payload(b, n))
	return e.oneSided([]hw.Segment{{Addr: unsafe.Add(unsafe.Pointer(b), bounceHeader), Len: n}}, addr, key, unix.SYS_PROCESS_VM_WRITEV)
}

// PutZcopy writes the segments and is done when it returns.
func (e *Endpoint) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return hw.Done, e.oneSided(local, addr, key, unix.SYS_PROCESS_VM_WRITEV)
}

// GetShort reads into.
func (e *Endpoint) GetShort(into []byte, addr uint64, key hw.RemoteKey) error {
	if len(into) > rawChunk {
		return hw.ErrTooLong
	}
	return e.oneSided([]hw.Segment{segmentOf(into)}, addr, key, unix.SYS_PROCESS_VM_READV)
}

// GetBcopy is not offered: GetZcopy needs no registered memory either.
func (e *Endpoint) GetBcopy(int, func([]byte), uint64, hw.RemoteKey, *hw.Completion) (hw.Status, error) {
	return hw.Done, fmt.Errorf("loopback: get with a callback: %w", hw.ErrInvalid)
}

// GetZcopy reads into the segments and is done when it returns.
func (e *Endpoint) GetZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return hw.Done, e.oneSided(local, addr, key, unix.SYS_PROCESS_VM_READV)
}

// Flush finds everything done: messages are in the peer's ring, and one-sided
// operations were complete when they returned.
func (e *Endpoint) Flush(hw.FlushScope, *hw.Completion) (hw.Status, error) {
	return hw.Done, e.ready()
}

// Fence has nothing to do: see Flush.
func (e *Endpoint) Fence() error { return e.ready() }

// Flush of all endpoints; see Endpoint.Flush.
func (i *Iface) Flush(hw.FlushScope, *hw.Completion) (hw.Status, error) {
	if !i.usable() {
		return hw.Done, errClosed
	}
	return hw.Done, nil
}

// Fence of all endpoints; see Endpoint.Flush.
func (i *Iface) Fence() error {
	if !i.usable() {
		return errClosed
	}
	return nil
}
