package loopback

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
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

// PutZcopy writes the segments and is done when it returns.
func (e *Endpoint) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return hw.Done, e.oneSided(local, addr, key, unix.SYS_PROCESS_VM_WRITEV)
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
