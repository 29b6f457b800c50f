package loopback

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/proc"
)

// host is what peers must have in common, and who we are. Immutable.
type host struct {
	bootID [2]uint64
	pidns  uint64 // inode
	netns  uint64 // inode
	uid    uint32
	self   process
}

// process names a process for good: a pid alone is reused.
type process struct {
	pid   uint32
	start uint64 // clock ticks since boot, as in /proc/<pid>/stat
}

// thisHost reads the host's identity, once for each process. A child after
// fork reads its own.
func thisHost() (host, error) {
	h, err := proc.This()
	if err != nil {
		return host{}, fmt.Errorf("loopback: %w", err)
	}
	return host{h.BootID, h.PIDNS, h.NetNS, h.UID, process{h.Self.PID, h.Self.Start}}, nil
}

// ending tells whether p runs no more or is about to end: its memory may be gone already.
func (p process) ending() bool { return proc.Process{PID: p.pid, Start: p.start}.Ending() }

// alive tells whether p still runs. A start of 0 is unknown and fits any.
func (p process) alive() bool { return proc.Process{PID: p.pid, Start: p.start}.Alive() }
