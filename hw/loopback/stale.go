package loopback

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/proclock"
)

// Removing a file of a dead owner must not remove the file that a new owner
// put in its place meanwhile. So what removes a segment, its owner
// included, has a lock (flock) on the file and checks under it that the name
// still leads to this file. The name can change only by such a removal.

const bellSuffix = ".bell"

// flockPatience is how long another remover at work is waited for.
const flockPatience = 64 * time.Millisecond

// removeStale removes the segment at path, with its other names and its
// doorbell, if its owner is dead. It returns false if the file is there and in
// use or not ours. patience is flockPatience, or 0 for files that another user may
// keep locked.
func removeStale(path string, h *host, patience time.Duration) bool {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, unix.ENOENT)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != h.uid {
		return false
	}
	header, err := readHeader(fd)
	if err != nil || !abandoned(header, h) {
		return false
	}
	if _, id, err := parseHeader(header, uint64(st.Size)); err == nil {
		for _, other := range id.paths(h.dir) {
			removeFile(fd, other, patience)
		}
	}
	proclock.Forget(h.dir, proc.Process{PID: header.PID, Start: header.StartTime})
	return removeFile(fd, path, patience)
}

// abandoned reads in a header whether its owner is dead, in every version: what
// names the owner has one place in all. The lock decides for owners in other pid
// namespaces, and on another host with which the directory is shared; those that
// have none count as in use, but for those of before the last boot.
func abandoned(s *hot.Segment, h *host) bool {
	owner := process{s.PID, s.StartTime, s.PIDNamespace}
	locked := s.Version == hot.SegVersion && s.Flags&hot.SegLocked != 0
	switch {
	case s.Magic != hot.SegMagic:
		return false
	case s.BootID == h.bootID && s.PIDNamespace == h.pidns && !h.blind:
		return !h.alive(owner)
	case locked:
		owner.pidns = elsewhere
		return !h.alive(owner)
	}
	return s.BootID != h.bootID
}

// elsewhere is a pid namespace that is none of this host's.
const elsewhere = 1

// removeFile removes the segment that is open as fd and was found at path.
// Another remover at work is waited for, but not for long. True means that
// path leads to that file no more.
func removeFile(fd int, path string, patience time.Duration) bool {
	for wait := time.Millisecond; ; wait *= 2 {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // ends with close
		if err == nil {
			break
		}
		if wait > patience {
			return false
		}
		time.Sleep(wait)
	}
	var opened, named unix.Stat_t
	if unix.Fstat(fd, &opened) != nil {
		return false
	}
	if err := unix.Lstat(path, &named); err != nil {
		return err == unix.ENOENT
	}
	if opened.Dev != named.Dev || opened.Ino != named.Ino {
		return true
	}
	unix.Unlink(path + bellSuffix)
	return unix.Unlink(path) == nil
}

// remove removes our own file. Nothing happens if it is gone already.
func (s *segment) remove() {
	for _, path := range s.id.paths(filepath.Dir(s.path)) {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Dev == s.dev && st.Ino == s.ino {
			removeFile(fd, path, flockPatience)
		}
		unix.Close(fd)
	}
}

// isSegment reports whether a file's name in the directory is that of a segment.
func isSegment(name string) bool {
	return strings.HasPrefix(name, "weft.") && !strings.HasSuffix(name, bellSuffix)
}

// removeStaleOf is removeStale for a file that may be another user's if we are root.
func removeStaleOf(path string, h *host) bool {
	var st unix.Stat_t
	if h.uid != 0 || unix.Lstat(path, &st) != nil || st.Uid == 0 {
		return removeStale(path, h, flockPatience)
	}
	as := *h
	as.uid = st.Uid
	return removeStale(path, &as, 0)
}

// sweeps says when each directory may be swept again.
var sweeps struct {
	sync.Mutex // taken by Open only
	next       map[string]time.Time
}

// sweep removes the segments of dead owners in the directory, and their locks: those of the
// user, and for root all. With many live segments this takes a while, so it takes at most a
// tenth of the time.
func sweep(h *host) {
	begin, dir := time.Now(), h.dir
	sweeps.Lock()
	defer sweeps.Unlock()
	if begin.Before(sweeps.next[dir]) {
		return
	}
	if d, err := os.Open(dir); err == nil {
		names, _ := d.Readdirnames(-1)
		d.Close()
		prefix := filePrefix(h.user)
		for _, name := range names {
			path := filepath.Join(dir, name)
			switch {
			case isSegment(name) && (strings.HasPrefix(name, prefix) || h.uid == 0):
				removeStaleOf(path, h)
			case strings.HasPrefix(name, proclock.FilePrefix):
				proclock.Remove(path)
			}
		}
	}
	if sweeps.next == nil {
		sweeps.next = map[string]time.Time{}
	}
	now := time.Now()
	sweeps.next[dir] = now.Add(9 * now.Sub(begin))
}
