package addrs

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proclock"
)

// Stale returns the paths of the files of shared vectors in a folder that no process has open, whatever network
// namespace they are of: this user's, or all that this user may open. Empty if the folder cannot be read. A file that a
// process is about to use may be among them; RemoveStale leaves it.
func Stale(dir string, all bool) (paths []string) {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	list, _ := d.Readdirnames(-1)
	for _, name := range list {
		if !strings.HasPrefix(name, FilePrefix) {
			continue
		}
		path := filepath.Join(dir, name)
		if s := openStale(path, all); s != nil {
			paths = append(paths, path)
			unix.Close(s.fd)
		}
	}
	return paths
}

// RemoveStale removes a file that Stale has returned, and reports whether it did: not where a process uses the file by
// now, or the folder does not let it.
func RemoveStale(path string) bool {
	s := openStale(path, true)
	if s == nil {
		return false
	}
	defer unix.Close(s.fd) // and with it the lock
	if unix.Unlink(path) != nil {
		return false
	}
	log.Infof(log.AV, "removed %s, whose users are dead", path)
	return true
}

// openStale returns a file of this user, or with all of any that it may open, if that has no users: locked against new
// ones. nil for any other. The caller closes its descriptor.
func openStale(path string, all bool) *file {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	s := &file{fd: fd, path: path}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && (all || int(st.Uid) == os.Geteuid()) {
		unused, err := s.tryLock(lockUsers, unix.F_WRLCK)
		if err == nil && unused && proclock.SameFile(fd, path) {
			return s
		}
	}
	unix.Close(fd)
	return nil
}
