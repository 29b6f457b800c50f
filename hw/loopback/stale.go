package loopback

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hot"
)

// Removing a file of a dead owner must not remove the file that a new owner
// put in its place meanwhile. So whoever removes a segment, its owner
// included, holds a lock (flock) on the file and checks under it that the name
// still leads to this file. The name can change only by such a removal.

const bellSuffix = ".bell"

// removeStale removes the segment at path, with its other name and its
// doorbell, if its owner is dead. It returns false if the file is there and in
// use or not ours.
func removeStale(path string, h *host) bool {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err == unix.ENOENT
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
		for _, other := range id.paths(filepath.Dir(path), h) {
			removeFile(fd, other)
		}
	}
	return removeFile(fd, path)
}

// abandoned tells from a header whether its owner is dead, in every version: what
// names the owner has one place in all. Headers of other pid namespaces do not
// tell; they count as in use.
func abandoned(s *hot.Segment, h *host) bool {
	switch {
	case s.Magic != hot.SegMagic:
		return false
	case s.BootID != h.bootID:
		return true
	case s.PIDNamespace != h.pidns:
		return false
	}
	return !process{s.PID, s.StartTime}.alive()
}

// removeFile removes the segment that is open as fd and was found at path.
// Another remover at work is waited for, but not for long. True means that
// path leads to that file no more.
func removeFile(fd int, path string) bool {
	for wait := time.Millisecond; ; wait *= 2 {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // ends with close
		if err == nil {
			break
		}
		if wait > 64*time.Millisecond {
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

// remove removes our own file. Nothing happens if somebody else did it.
func (s *segment) remove(h *host) {
	for _, path := range s.id.paths(filepath.Dir(s.path), h) {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Dev == s.dev && st.Ino == s.ino {
			removeFile(fd, path)
		}
		unix.Close(fd)
	}
}

// sweeps says when each directory may be swept again.
var sweeps struct {
	sync.Mutex // taken by Open only
	next       map[string]time.Time
}

// sweep removes the segments of dead owners in dir. With many live segments
// this takes a while, so it takes at most a tenth of the time.
func sweep(dir string, h *host) {
	begin := time.Now()
	sweeps.Lock()
	defer sweeps.Unlock()
	if begin.Before(sweeps.next[dir]) {
		return
	}
	if d, err := os.Open(dir); err == nil {
		names, _ := d.Readdirnames(-1)
		d.Close()
		prefix := filePrefix(h.uid)
		for _, name := range names {
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, bellSuffix) {
				removeStale(filepath.Join(dir, name), h)
			}
		}
	}
	if sweeps.next == nil {
		sweeps.next = map[string]time.Time{}
	}
	now := time.Now()
	sweeps.next[dir] = now.Add(9 * now.Sub(begin))
}
