package stats

import (
	"bytes"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/proc"
)

// Places of the header's fields, for the reader, which trusts no pointer.
const (
	offMagic   = int(unsafe.Offsetof(header{}.Magic))
	offVersion = int(unsafe.Offsetof(header{}.Version))
	offBytes   = int(unsafe.Offsetof(header{}.Bytes))
	offTable   = int(unsafe.Offsetof(header{}.Table))
	offPID     = int(unsafe.Offsetof(header{}.PID))
	offUID     = int(unsafe.Offsetof(header{}.UID))
	offStart   = int(unsafe.Offsetof(header{}.StartTime))
	offBootID  = int(unsafe.Offsetof(header{}.BootID))
	offPIDNS   = int(unsafe.Offsetof(header{}.PIDNS))
	offCreated = int(unsafe.Offsetof(header{}.Created))
	offWeft    = int(unsafe.Offsetof(header{}.Weft))
	offCommand = int(unsafe.Offsetof(header{}.Command))
	offLocked  = int(unsafe.Offsetof(header{}.Locked))
)

// newHeader describes this process.
func newHeader(host *proc.Host, weft string) header {
	h := header{
		Magic: magic, Version: Version, Bytes: fileBytes, Table: hash(),
		PID: host.Self.PID, UID: host.User, StartTime: host.Self.Start, BootID: host.BootID, PIDNS: host.PIDNS,
		Created: time.Now().UnixNano(),
	}
	copy(h.Weft[:], weft)
	if name, err := os.ReadFile("/proc/self/comm"); err == nil {
		copy(h.Command[:], bytes.TrimSpace(name))
	}
	return h
}

// sweep removes this user's pages in dir whose processes have ended, and for root all.
func sweep(dir string, host *proc.Host) {
	list, err := List(dir, host.User, host.UID == 0)
	if err != nil {
		return
	}
	for _, path := range list {
		RemoveStale(path, host)
	}
}

// RemoveStale removes a page whose process has ended, and reports whether it did. Nothing can take the name meanwhile
// but a new process with the same id, which exists only after the old one has gone; the check of the file just before
// it is removed leaves no time for that in practice, and what is lost then are counters.
func RemoveStale(path string, host *proc.Host) bool {
	s, err := identify(path)
	if s == nil || err != nil && s.PID == 0 || s.Alive(host) {
		return false
	}
	return unix.Unlink(path) == nil
}
