package loopback

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

var hostCache struct {
	sync.Mutex // taken by Open only
	host
}

// thisHost reads the host's identity, once for each process. A child after
// fork reads its own.
func thisHost() (host, error) {
	hostCache.Lock()
	defer hostCache.Unlock()
	if hostCache.self.pid == uint32(os.Getpid()) {
		hostCache.uid = uint32(os.Geteuid()) // it may change
		return hostCache.host, nil
	}
	h, err := readHost()
	if err == nil {
		hostCache.host = h
	}
	return h, err
}

func readHost() (host, error) {
	h := host{uid: uint32(os.Geteuid())}
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return h, fmt.Errorf("loopback: boot id: %w", err)
	}
	id, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(id) != 16 {
		return h, fmt.Errorf("loopback: boot id %q has an unknown form", text)
	}
	h.bootID = [2]uint64{binary.LittleEndian.Uint64(id), binary.LittleEndian.Uint64(id[8:])}
	for _, ns := range []struct {
		name string
		ino  *uint64
	}{{"pid", &h.pidns}, {"net", &h.netns}} {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+ns.name, &st); err != nil {
			return h, fmt.Errorf("loopback: %s namespace: %w", ns.name, err)
		}
		*ns.ino = st.Ino
	}
	h.self.pid = uint32(os.Getpid())
	state, err := readProcess(h.self.pid)
	if err != nil {
		return h, fmt.Errorf("loopback: own process: %w", err)
	}
	h.self.start = state.start
	return h, nil
}

// processState is what /proc/<pid>/stat tells.
type processState struct {
	state   byte
	threads uint64
	start   uint64
}

// ended tells whether the process runs no more. The first thread of a process
// may end before the others; it is a zombie then, but the process lives.
func (s processState) ended() bool {
	return s.state == 'X' || s.state == 'x' || s.state == 'Z' && s.threads <= 1
}

func readProcess(pid uint32) (processState, error) {
	fd, err := unix.Open("/proc/"+strconv.FormatUint(uint64(pid), 10)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return processState{}, err
	}
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	unix.Close(fd)
	if err != nil {
		return processState{}, err
	}
	s, ok := parseStat(buf[:n])
	if !ok {
		return s, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	return s, nil
}

// parseStat reads fields 3 (state), 20 (threads) and 22 (start time). The
// command name before them may hold any character, so the last ')' counts.
func parseStat(b []byte) (processState, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return processState{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return processState{}, false
	}
	threads, err1 := strconv.ParseUint(string(f[17]), 10, 64)
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return processState{f[0][0], threads, start}, err1 == nil && err2 == nil
}

// alive tells whether p still runs. A start of 0 is unknown and fits any. When
// /proc does not tell, the process counts as alive if its pid is in use.
func (p process) alive() bool {
	if p.pid == 0 || p.pid > 1<<30 {
		return false
	}
	s, err := readProcess(p.pid)
	if err == nil {
		return !s.ended() && (p.start == 0 || p.start == s.start)
	}
	if err == unix.ENOENT || err == unix.ESRCH {
		return unix.Kill(int(p.pid), 0) == unix.EPERM // hidden from us by the mount options of /proc
	}
	return unix.Kill(int(p.pid), 0) != unix.ESRCH
}
