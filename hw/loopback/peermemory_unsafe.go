package loopback

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/proc"
)

// Memory of peers: reads and writes of it ([hw.PeerMemory]), and the words that both sides share.

const (
	maxPeerIOV = 8 // segments on either side

	// rawChunk is what is read in a system call that the Go scheduler does not
	// know of: a few microseconds' work. A longer one would hold up a garbage
	// collection; it is made known and is bounded only to be interruptible.
	rawChunk  = 64 << 10
	longChunk = 16 << 20
)

// iovec is struct iovec, with addresses that the Go runtime does not follow.
type iovec struct {
	base uintptr
	len  uintptr
}

// ReadPeer reads the peer's memory. It is a system call between interfaces of one
// process too: the remote addresses were in a ring that others can write, and a
// wrong one is an error then and not the end of the process. What a peer has back by then is not read.
func (e *Endpoint) ReadPeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	n, err := e.transfer(local, remote, unix.SYS_PROCESS_VM_READV)
	if n != 0 && e.revoked() {
		return 0, hw.ErrPeerDead
	}
	return n, err
}

// WritePeer writes the peer's memory, as ReadPeer reads it.
func (e *Endpoint) WritePeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	return e.transfer(local, remote, unix.SYS_PROCESS_VM_WRITEV)
}

// transfer moves as many bytes as the remote segments have, with one of the two
// system calls.
func (e *Endpoint) transfer(local []hw.Segment, remote []hw.RemoteSegment, call uintptr) (int, error) {
	if err := e.ready(); err != nil {
		return 0, err
	}
	var l, r [maxPeerIOV]iovec
	total, err := collect(&l, &r, local, remote)
	if err != nil || total == 0 {
		return 0, err
	}
	defer runtime.KeepAlive(local)
	if e.iface.cfg.UseCMA == CMANo || e.noCMA.Load() {
		return 0, hw.ErrPermission
	}
	return e.transferProcess(l[:len(local)], r[:len(remote)], total, call)
}

// collect copies the segments, checks them and cuts the local ones to the
// remote length.
func collect(l, r *[maxPeerIOV]iovec, local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	if len(local) > maxPeerIOV || len(remote) > maxPeerIOV {
		return 0, fmt.Errorf("loopback: transfer of %d by %d segments: %w", len(local), len(remote), hw.ErrInvalid)
	}
	const limit = uint64(1) << 62
	var have, want uint64
	for n, s := range local {
		if s.Len < 0 {
			return 0, fmt.Errorf("loopback: local segment of %d bytes: %w", s.Len, hw.ErrInvalid)
		}
		l[n] = iovec{uintptr(s.Addr), uintptr(s.Len)}
		have = min(have+uint64(s.Len), limit)
	}
	for n, s := range remote {
		if s.Len > limit || s.Addr+s.Len < s.Addr {
			return 0, fmt.Errorf("loopback: remote segment of %d bytes at %#x: %w", s.Len, s.Addr, hw.ErrInvalid)
		}
		r[n] = iovec{uintptr(s.Addr), uintptr(s.Len)}
		want = min(want+s.Len, limit)
	}
	if want > have || want == limit {
		return 0, fmt.Errorf("loopback: transfer of %d bytes, %d on this side: %w", want, have, hw.ErrInvalid)
	}
	return int(want), nil
}

// advance drops n bytes from the front of v, and empty segments.
func advance(v []iovec, n uintptr) []iovec {
	for len(v) > 0 && n >= v[0].len {
		n -= v[0].len
		v = v[1:]
	}
	if len(v) > 0 {
		v[0].base += n
		v[0].len -= n
	}
	return v
}

// transferProcess moves total bytes with process_vm_readv or process_vm_writev,
// one pair of segments at a time, or all of them in one call if they are short.
func (e *Endpoint) transferProcess(l, r []iovec, total int, call uintptr) (int, error) {
	chunk := uintptr(longChunk)
	if total <= rawChunk {
		chunk = rawChunk
	}
	done := 0
	for l, r = advance(l, 0), advance(r, 0); done < total; {
		nl, nr := len(l), len(r)
		cut := uintptr(0)
		if total > rawChunk { // one pair, bounded
			nl, nr = 1, 1
			n := min(l[0].len, r[0].len, chunk)
			cut, r[0].len = r[0].len-n, n
		}
		n, errno := vmTransfer(call, e.pid, l[:nl], r[:nr], total <= rawChunk)
		if cut != 0 {
			r[0].len += cut
		}
		if n == 0 || errno != 0 {
			return done, e.stopped(errno, uint64(done), uint64(total))
		}
		done += int(n)
		l, r = advance(l, n), advance(r, n)
	}
	return done, nil
}

// stopped is why a system call has moved nothing of a transfer that is at done bytes.
func (e *Endpoint) stopped(errno unix.Errno, done, total uint64) error {
	switch {
	case errno != 0:
		return e.peerError(errno)
	case e.ending():
		return hw.ErrPeerDead
	}
	return fmt.Errorf("loopback: transfer stopped at %d of %d bytes: %w", done, total, hw.ErrInvalid)
}

// vmTransfer is the system call, again when a signal has ended it. raw hides it from the Go scheduler.
func vmTransfer(call uintptr, pid uint32, l, r []iovec, raw bool) (n uintptr, errno unix.Errno) {
	lp, rp := unsafe.Pointer(&l[0]), unsafe.Pointer(&r[0])
	for errno = unix.EINTR; errno == unix.EINTR; {
		if raw {
			n, _, errno = unix.RawSyscall6(call, uintptr(pid),
				uintptr(lp), uintptr(len(l)), uintptr(rp), uintptr(len(r)), 0)
		} else {
			n, _, errno = unix.Syscall6(call, uintptr(pid),
				uintptr(lp), uintptr(len(l)), uintptr(rp), uintptr(len(r)), 0)
		}
	}
	return n, errno
}

// ending reports whether the peer runs no more, is about to end or has closed its interface: its memory may be
// gone already.
func (e *Endpoint) ending() bool {
	if e.lost() {
		return true
	}
	owner := e.seg.id.owner
	h := &e.iface.host
	if owner.pidns == h.pidns && !h.blind {
		return proc.Process{PID: owner.pid, Start: owner.start}.Ending()
	}
	return !h.blind && proc.Process{PID: e.pid}.Ending() || !h.alive(owner)
}

func (e *Endpoint) peerError(errno unix.Errno) error {
	if errno != unix.ENOSYS && e.ending() {
		return hw.ErrPeerDead // while a process ends, its memory goes first
	}
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		if !e.noCMA.Swap(true) && e.iface.cfg.UseCMA == CMAYes {
			e.iface.logf("cross-memory attach to process %d: %v", e.pid, errno)
		}
		return hw.ErrPermission
	case unix.ESRCH:
		return hw.ErrPeerDead
	case unix.EFAULT:
		return fmt.Errorf("loopback: transfer: %w: %w", hw.ErrInvalid, errno)
	}
	return fmt.Errorf("loopback: transfer: %w", errno)
}

// SharedWords are in our entry of the peer's attach table.
func (e *Endpoint) SharedWords() *[4]uint64 { return &e.seg.attach(e.owner - 1).Words }

// SourceWords are in the sender's entry of the own attach table.
func (i *Iface) SourceWords(src hw.Source) *[4]uint64 {
	if i.known(uint32(src)) == nil {
		return nil
	}
	return &i.seg.attach(uint32(src)).Words
}

// OwnNotice is the interface's.
func (p presence) OwnNotice() *hw.Notice { return p.notice }

// notice is in the header.
func (s *segment) notice() *hw.Notice { return (*hw.Notice)(&s.header().Notice) }

// PeerNotice is in the peer's segment.
func (e *Endpoint) PeerNotice() *hw.Notice { return e.seg.notice() }
