// Package proc tells processes of this host apart for good: by process id and
// start time, and by what two processes must have in common to share memory and
// to see each other, the boot and the namespaces.
package proc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Host is what processes that share memory must have in common, and who we are.
type Host struct {
	BootID [2]uint64
	PIDNS  uint64 // inode
	NetNS  uint64 // inode
	UID    uint32 // effective
	Self   Process
}

// Process names a process for good: a pid alone is reused.
type Process struct {
	PID   uint32
	Start uint64 // clock ticks since boot, as in /proc/<pid>/stat; 0: unknown
}

var cache struct {
	sync.Mutex // taken by control operations only
	Host
}

// This returns the host's identity, which is read once for each process. A
// child after fork reads its own.
func This() (Host, error) {
	cache.Lock()
	defer cache.Unlock()
	if cache.Self.PID == uint32(os.Getpid()) {
		cache.UID = uint32(os.Geteuid()) // it may change
		return cache.Host, nil
	}
	h, err := readHost()
	if err == nil {
		cache.Host = h
	}
	return h, err
}

func readHost() (Host, error) {
	h := Host{UID: uint32(os.Geteuid())}
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return h, fmt.Errorf("boot id: %w", err)
	}
	id, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(id) != 16 {
		return h, fmt.Errorf("boot id %q has an unknown form", text)
	}
	h.BootID = [2]uint64{binary.LittleEndian.Uint64(id), binary.LittleEndian.Uint64(id[8:])}
	for _, ns := range []struct {
		name string
		ino  *uint64
	}{{"pid", &h.PIDNS}, {"net", &h.NetNS}} {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+ns.name, &st); err != nil {
			return h, fmt.Errorf("%s namespace: %w", ns.name, err)
		}
		*ns.ino = st.Ino
	}
	h.Self.PID = uint32(os.Getpid())
	state, err := Read(h.Self.PID)
	if err != nil {
		return h, fmt.Errorf("own process: %w", err)
	}
	h.Self.Start = state.Start
	return h, nil
}

// State is what /proc/<pid>/stat tells.
type State struct {
	State   byte   // R, S, Z and so on
	Flags   uint64 // PF_* of the kernel
	Threads uint64
	Start   uint64 // clock ticks since boot
}

// Ended tells whether the process runs no more. The first thread of a process
// may end before the others; it is a zombie then, but the process lives.
func (s State) Ended() bool {
	return s.State == 'X' || s.State == 'x' || s.State == 'Z' && s.Threads <= 1
}

// Read returns what /proc/<pid>/stat tells. Errors: unix.ENOENT for a process
// that is not there or hidden.
func Read(pid uint32) (State, error) {
	fd, err := unix.Open("/proc/"+strconv.FormatUint(uint64(pid), 10)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return State{}, err
	}
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	unix.Close(fd)
	if err != nil {
		return State{}, err
	}
	s, ok := parseStat(buf[:n])
	if !ok {
		return s, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	return s, nil
}

// parseStat reads fields 3 (state), 9 (flags), 20 (threads) and 22 (start time). The
// command name before them may hold any character, so the last ')' counts.
func parseStat(b []byte) (State, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return State{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return State{}, false
	}
	flags, err0 := strconv.ParseUint(string(f[6]), 10, 64)
	threads, err1 := strconv.ParseUint(string(f[17]), 10, 64)
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return State{f[0][0], flags, threads, start}, err0 == nil && err1 == nil && err2 == nil
}

// Ending tells whether p runs no more or is about to end: its memory may be
// gone already.
func (p Process) Ending() bool {
	const exiting = 0x4 // PF_EXITING
	if s, err := Read(p.PID); err == nil && s.Start == p.Start && s.Flags&exiting != 0 {
		return true
	}
	return !p.Alive()
}

// Alive tells whether p still runs. A start of 0 is unknown and fits any. When
// /proc does not tell, the process counts as alive if its pid is in use.
func (p Process) Alive() bool {
	if p.PID == 0 || p.PID > 1<<30 {
		return false
	}
	s, err := Read(p.PID)
	if err == nil {
		return !s.Ended() && (p.Start == 0 || p.Start == s.Start)
	}
	if err == unix.ENOENT || err == unix.ESRCH {
		return unix.Kill(int(p.PID), 0) == unix.EPERM // hidden from us by the mount options of /proc
	}
	return unix.Kill(int(p.PID), 0) != unix.ESRCH
}
