package loopback

import (
	"fmt"
	"net/netip"

	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/proclock"
)

// host is what peers must have in common, which process this is, and where segments are. Immutable.
type host struct {
	dir    string
	bootID [2]uint64
	pidns  uint64 // inode
	netns  uint64 // inode
	uid    uint32
	user   uint32 // uid as names of files have it: the same in all user namespaces of a depth
	self   process
	blind  bool // proc.Host.Blind

	locked bool                  // we hold a lock in dir (internal/proclock), by which other pid namespaces know us
	across bool                  // interfaces of other network namespaces are found, too
	here   func(netip.Addr) bool // Config.Here
}

// process names a process for good: a pid alone is reused.
type process struct {
	pid   uint32
	start uint64 // clock ticks since boot, as in /proc/<pid>/stat; 0: unknown
	pidns uint64 // in which pid is meant; 0: unknown
}

// thisHost reads the host's identity, once for each process. A child after
// fork reads its own.
func thisHost(dir string) (host, error) {
	h, err := proc.This()
	if err != nil {
		return host{}, fmt.Errorf("loopback: %w", err)
	}
	return host{
		dir: dir, bootID: h.BootID, pidns: h.PIDNS, netns: h.NetNS, uid: h.UID, user: h.User,
		self: process{h.Self.PID, h.Self.Start, h.PIDNS}, blind: h.Blind,
	}, nil
}

// isSelf reports whether p is this process.
func (h *host) isSelf(p process) bool {
	return p.pid == h.self.pid && p.start == h.self.start && (p.pidns == 0 || p.pidns == h.pidns)
}

// alive reports whether p still runs. Of this pid namespace /proc is asked; of others, and
// where /proc is of another, the lock that p holds decides.
func (h *host) alive(p process) bool {
	own := p.pidns == h.pidns && !h.blind
	switch {
	case h.isSelf(p):
		return true
	case (own || p.pidns == 0 && !h.blind) && (proc.Process{PID: p.pid, Start: p.start}).Alive():
		return true
	case own:
		return false
	}
	_, locked := proclock.Owner(h.dir, h.uid, proc.Process{PID: p.pid, Start: p.start})
	return locked
}

// pidOf is p's process id in this pid namespace, 0 if it has none here.
func (h *host) pidOf(p process) uint32 {
	if p.pidns == h.pidns {
		return p.pid
	}
	pid, _ := proclock.Owner(h.dir, h.uid, proc.Process{PID: p.pid, Start: p.start})
	return pid
}
