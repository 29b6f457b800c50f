package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/internal/addrs"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/proclock"
	"github.com/weft-fabric/weft/internal/stats"
)

func checkSettings(_ context.Context, h *host) []Finding {
	if h.bad != nil {
		return []Finding{{"settings", Fail, h.bad.Error(), "correct or unset the variable; weft info lists them all"}}
	}
	if h.cfg.Lowered() != "" {
		return []Finding{{"settings", Warn, h.cfg.Lowered(), "set it to that number or less"}}
	}
	if unknown := config.Unknown(os.Environ()); len(unknown) != 0 {
		return []Finding{{"settings", Warn, strings.Join(unknown, ", ") + ": not a variable of weft",
			"unset it; weft info lists those that are"}}
	}
	return good("settings", "every FI_WEFT_* variable that is set has a good value")
}

// Types of memory file systems (statfs(2)).
var memoryFS = map[uint32]string{0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x958458f6: "hugetlbfs"}

// segmentBytes is what an endpoint to which one thread posts needs with the settings, on a file system of so many
// bytes: ring, attach table and bounce buffers.
func segmentBytes(c *config.Config, fs uint64) uint64 {
	return uint64(4096 + c.RingSlots*128 + c.MaxPeers*128 + c.Bounces(2, fs)*(c.SHMBounceSize()+64))
}

func checkDirectory(_ context.Context, h *host) []Finding {
	dir := h.cfg.SHMDir
	bad := func(what, remedy string) []Finding { return []Finding{{"shared memory", Fail, what, remedy}} }
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return bad(fmt.Sprintf("%s: %v", dir, err), "mount -t tmpfs tmpfs "+dir+", or set FI_WEFT_SHM_DIR to a "+
			"memory file system")
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil && err != unix.EOPNOTSUPP {
		return bad(fmt.Sprintf("%s: cannot create a file: %v", dir, err), "chmod 1777 "+dir+
			", or set FI_WEFT_SHM_DIR to a directory of your own on a memory file system")
	}
	if err == nil {
		unix.Close(fd)
	}
	total, free := st.Blocks*uint64(st.Bsize), st.Bavail*uint64(st.Bsize)
	need := segmentBytes(h.cfg, total)
	fits := free / need
	what := fmt.Sprintf("%s: %s free of %s, room for %d endpoints of %s", dir,
		stats.FormatValue("bytes", float64(free)), stats.FormatValue("bytes", float64(total)), fits,
		stats.FormatValue("bytes", float64(need)))
	grow := "mount -o remount,size=4G " + dir + " (containers: --shm-size=4g), or lower FI_WEFT_BOUNCE_COUNT"
	switch name, memory := memoryFS[uint32(st.Type)]; {
	case fits == 0:
		return bad(what, grow)
	case !memory:
		return []Finding{{"shared memory", Warn, what + "; it is not a memory file system",
			"set FI_WEFT_SHM_DIR to one, such as /dev/shm"}}
	case fits < 16:
		return []Finding{{"shared memory", Warn, what, grow}}
	default:
		return good("shared memory", "%s (%s)", what, name)
	}
}

// checkLeftovers finds files of processes that have ended, and removes them
// if it is asked to.
func checkLeftovers(_ context.Context, h *host) []Finding {
	segments, err := loopback.Survey(h.cfg.SHMDir)
	self, err2 := proc.This()
	if err != nil || err2 != nil {
		return note("leftovers", "cannot read: %v", firstError(err, err2))
	}
	var dead []string
	live := 0
	for _, s := range segments {
		switch s.State {
		case loopback.SegmentDead:
			dead = append(dead, s.Path)
		case loopback.SegmentLive:
			live++
		}
	}
	pages, _ := stats.List(h.cfg.SHMDir, self.User, self.UID == 0) // the directory was read just now
	for _, p := range pages {
		if s, _ := stats.Read(p); s != nil && !s.Alive(&self) {
			dead = append(dead, p)
		}
	}
	dead = append(dead, proclock.Stale(h.cfg.SHMDir)...)
	dead = append(dead, addrs.Stale(h.cfg.SHMDir, self.UID == 0)...)
	if len(dead) == 0 {
		return good("leftovers", "no segments of dead processes; %d in use", live)
	}
	what := fmt.Sprintf("%d files (%s) of processes that have ended", len(dead),
		stats.FormatValue("bytes", fileBytes(dead)))
	if !h.fix {
		return []Finding{{"leftovers", Warn, what + ", such as " + dead[0], "weft doctor --fix (the next process on " +
			"weft removes its own user's too)"}}
	}
	return []Finding{removeAll(dead, what, &self)}
}

// fileBytes is how long files are together; those that are gone count nothing.
func fileBytes(paths []string) (bytes float64) {
	for _, p := range paths {
		if st, err := os.Lstat(p); err == nil {
			bytes += float64(st.Size())
		}
	}
	return bytes
}

func removeAll(dead []string, what string, self *proc.Host) Finding {
	for _, path := range dead {
		var ok bool
		switch name := filepath.Base(path); {
		case strings.HasPrefix(name, stats.FilePrefix):
			ok = stats.RemoveStale(path, self)
		case strings.HasPrefix(name, proclock.FilePrefix):
			ok = proclock.Remove(path)
		case strings.HasPrefix(name, addrs.FilePrefix):
			ok = addrs.RemoveStale(path)
		default:
			ok, _ = loopback.RemoveDead(path)
		}
		if _, err := os.Lstat(path); !ok && err == nil {
			return Finding{"leftovers", Fail, path + " cannot be removed", "run weft doctor --fix as its owner or as " +
				"root"}
		}
	}
	return Finding{Check: "leftovers", Verdict: Good, What: "removed " + what}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// smallMemlock is the limit below which registering memory with RDMA devices
// fails soon.
const smallMemlock = 64 << 20

func checkMemlock(context.Context, *host) []Finding {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return note("memlock", "cannot be read: %v", err)
	}
	switch {
	case l.Cur == unix.RLIM_INFINITY:
		return good("memlock", "unlimited")
	case l.Cur >= smallMemlock || os.Geteuid() == 0:
		return good("memlock", "%s", stats.FormatValue("bytes", float64(l.Cur)))
	}
	return []Finding{{"memlock", Note, stats.FormatValue("bytes", float64(l.Cur)) +
		" may be locked: enough on one host, too little for RDMA devices and weft trace",
		"for RDMA devices: ulimit -l unlimited, or memlock unlimited in /etc/security/limits.conf"}}
}

// chosen returns the word in brackets of a sysfs setting.
func chosen(text string) string {
	if i := strings.IndexByte(text, '['); i >= 0 {
		if j := strings.IndexByte(text[i:], ']'); j > 0 {
			return text[i+1 : i+j]
		}
	}
	return strings.TrimSpace(text)
}

func checkHugePages(_ context.Context, h *host) []Finding {
	thp := "not built into the kernel"
	if b, err := os.ReadFile(filepath.Join(h.sys, "kernel/mm/transparent_hugepage/enabled")); err == nil {
		thp = chosen(string(b))
	}
	reserved := 0
	if b, err := os.ReadFile(filepath.Join(h.sys, "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")); err == nil {
		reserved, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	if thp == "never" {
		return []Finding{{"huge pages", Note, "transparent huge pages are off: deep matching queues cost more TLB " +
			"misses",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"}}
	}
	return good("huge pages", "transparent: %s; %d of 2 MiB reserved", thp, reserved)
}
