// Package proc identifies processes of this host for good: by process id,
// start time and what was executed, and by what two processes must have in common to share memory and
// to see each other, the boot and the namespaces.
package proc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Host is what processes that share memory must have in common, and which process this is.
type Host struct {
	BootID [2]uint64
	PIDNS  uint64 // inode
	NetNS  uint64 // inode
	UID    uint32 // effective
	User   uint32 // UID as the user namespace above this one numbers it, which containers have in common
	Self   Process
	// Blind: /proc is of another pid namespace, so what it says of other processes is of others than those meant.
	Blind bool
}

// Process names a process for good: a pid alone is reused.
type Process struct {
	PID   uint32
	Start uint64 // State.Start; 0: unknown
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
		// It may change; the map of a namespace is written once, and until then the id is another.
		if uid := uint32(os.Geteuid()); uid != cache.UID {
			cache.UID, cache.User = uid, OuterUID(uid)
		}
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
	h.User = OuterUID(h.UID)
	h.Self.PID = uint32(os.Getpid())
	link, err := os.Readlink("/proc/self")
	if err != nil {
		return h, fmt.Errorf("own process: %w", err)
	}
	h.Blind = link != strconv.Itoa(os.Getpid())
	state, err := read("self")
	if err != nil {
		return h, fmt.Errorf("own process: %w", err)
	}
	h.Self.Start = state.Start
	return h, nil
}

// OuterUID is Host.User of a uid. Where /proc does not say, it is the uid.
func OuterUID(uid uint32) uint32 {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return uid
	}
	return mapUID(string(text), uid)
}

// mapUID translates a uid by the lines of a uid_map (user_namespaces(7)): the first
// uid inside, the first one outside, and how many.
func mapUID(text string, uid uint32) uint32 {
	for line := range strings.Lines(text) {
		var inside, outside, count uint32
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && uid >= inside && uid-inside < count {
			return outside + (uid - inside)
		}
	}
	return uid
}

// State is what /proc/<pid>/stat says.
type State struct {
	State   byte   // R, S, Z and so on
	Flags   uint64 // PF_* of the kernel
	Threads uint64
	// Start is when the process started, in clock ticks since boot (the low 40
	// bits), and what it runs since then: a hash of where its stack was put, which
	// each execve changes. The hash is 0 where the kernel does not show it, as for
	// processes that are not dumpable. Without address randomisation it may stay
	// the same.
	Start uint64
}

// ticksBits is the part of Start that is a time: 348 years at 100 ticks a second.
const ticksBits = 40

// start makes State.Start of two fields of /proc/<pid>/stat.
func start(ticks, stack uint64) uint64 {
	image := uint64(0)
	if stack != 0 {
		image = max(1, stack*0x9e3779b97f4a7c15>>ticksBits) // Fibonacci hashing: Knuth, TAOCP 3, 6.4
	}
	return ticks&(1<<ticksBits-1) | image<<ticksBits
}

// same reports whether two values of State.Start may be of one process that has
// not called execve meanwhile.
func same(a, b uint64) bool {
	if a == 0 || b == 0 {
		return true
	}
	x, y := a>>ticksBits, b>>ticksBits
	return (a^b)&(1<<ticksBits-1) == 0 && (x == 0 || y == 0 || x == y)
}

// Ended reports whether the process runs no more. The first thread of a process
// may end before the others; it is a zombie then, but the process lives.
func (s State) Ended() bool {
	return s.State == 'X' || s.State == 'x' || s.State == 'Z' && s.Threads <= 1
}

// Read returns what /proc/<pid>/stat says. Errors: unix.ENOENT for a process
// that is not there or hidden.
func Read(pid uint32) (State, error) { return read(strconv.FormatUint(uint64(pid), 10)) }

// read is Read of the process that /proc calls so.
func read(name string) (State, error) {
	fd, err := unix.Open("/proc/"+name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
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
		return s, fmt.Errorf("/proc/%s/stat has an unknown form", name)
	}
	return s, nil
}

// parseStat reads fields 3 (state), 9 (flags), 20 (threads), 22 (start time) and 28
// (start of the stack). The command name before them may hold any character, so the
// last ')' counts.
func parseStat(b []byte) (State, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return State{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 26 || len(f[0]) != 1 {
		return State{}, false
	}
	flags, err0 := strconv.ParseUint(string(f[6]), 10, 64)
	threads, err1 := strconv.ParseUint(string(f[17]), 10, 64)
	ticks, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	stack, err3 := strconv.ParseUint(string(f[25]), 10, 64)
	return State{f[0][0], flags, threads, start(ticks, stack)}, errors.Join(err0, err1, err2, err3) == nil
}

// Ending reports whether p runs no more or is about to end: its memory may be
// gone already.
func (p Process) Ending() bool {
	const exiting = 0x4 // PF_EXITING
	if s, err := Read(p.PID); err == nil && same(s.Start, p.Start) && s.Flags&exiting != 0 {
		return true
	}
	return !p.Alive()
}

// Alive reports whether p still runs, and not another program in its place. A start
// of 0 is unknown and fits any. When /proc does not say, the process counts as alive if its pid is in use.
func (p Process) Alive() bool {
	if p.PID == 0 || p.PID > 1<<30 {
		return false
	}
	s, err := Read(p.PID)
	if err == nil {
		return !s.Ended() && same(p.Start, s.Start)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return unix.Kill(int(p.PID), 0) == unix.EPERM // hidden from us by the mount options of /proc
	}
	return unix.Kill(int(p.PID), 0) != unix.ESRCH
}
