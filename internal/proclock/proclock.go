// Package proclock reports whether a process of this host runs, whatever pid
// namespace it is in: each process that shares a directory with others holds a
// lock on a file of its own there, which the kernel takes back when it ends.
//
// The lock is a POSIX record lock (fcntl(2), F_SETLK): a child after fork does
// not have it, and F_GETLK gives its owner's process id as the caller's pid
// namespace numbers it. It has one peculiarity: a process loses it by closing
// any descriptor of the file. So no process opens its own, which the file's name
// says: weft-lock.<pid>.<start>.<copy>, pid and start as the owner sees them.
// Two copies of weft in one process have two files.
//
// Only the holder of the lock removes the file: its owner, or, when that has ended,
// the process that gets the lock then. So a name that leads to a locked file does so until
// the owner is done with it.
package proclock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/proc"
)

// FilePrefix starts the names of all lock files.
const FilePrefix = "weft-lock."

// copies is how many copies of weft a process may have.
const copies = 4

// ErrUnsupported: the directory's file system has no locks.
var ErrUnsupported = errors.New("no record locks on this file system")

// Lock is this process's lock in a directory.
type Lock struct {
	dir  string // immutable, as all but refs
	path string
	fd   int
	refs int // own.Mutex
}

// own are the locks of this process.
var own struct {
	sync.Mutex // taken by control operations only
	locks      map[string]*Lock
}

// fileName is the name of the lock file of one copy of weft in a process.
func fileName(p proc.Process, n int) string { return prefix(p) + strconv.Itoa(n) }

// prefix starts the names of a process's lock files. A start of 0 is unknown.
func prefix(p proc.Process) string {
	s := FilePrefix + strconv.FormatUint(uint64(p.PID), 10) + "."
	if p.Start == 0 {
		return s
	}
	return s + strconv.FormatUint(p.Start, 16) + "."
}

// parse is the opposite of fileName.
func parse(name string) (p proc.Process, ok bool) {
	rest, ok := strings.CutPrefix(name, FilePrefix)
	f := strings.Split(rest, ".")
	if !ok || len(f) != 3 {
		return p, false
	}
	pid, err := strconv.ParseUint(f[0], 10, 32)
	start, err2 := strconv.ParseUint(f[1], 16, 64)
	n, err3 := strconv.Atoi(f[2])
	p = proc.Process{PID: uint32(pid), Start: start}
	return p, errors.Join(err, err2, err3) == nil && n >= 0 && n < copies && fileName(p, n) == name
}

// Hold takes this process's lock in a directory until it is released as often as
// it was taken. Errors: ErrUnsupported, and those of the file system.
func Hold(dir string) (*Lock, error) {
	own.Lock()
	defer own.Unlock()
	if l := own.locks[dir]; l != nil {
		l.refs++
		return l, nil
	}
	h, err := proc.This()
	if err != nil {
		return nil, err
	}
	l, err := create(dir, h.Self)
	if err != nil {
		return nil, fmt.Errorf("lock file in %s: %w", dir, err)
	}
	if own.locks == nil {
		own.locks = map[string]*Lock{}
	}
	own.locks[dir] = l
	return l, nil
}

// create makes and locks the first file of a process that is not there. A
// process that sweeps may take a file away before it is locked.
func create(dir string, self proc.Process) (*Lock, error) {
	const tries = 100
	for try := 0; try < tries; try++ {
		path := filepath.Join(dir, fileName(self, try%copies))
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, unix.EEXIST) {
			continue // another copy's
		}
		if err != nil {
			return nil, err
		}
		switch err = setLock(fd); {
		case err == nil && SameFile(fd, path):
			return &Lock{dir: dir, path: path, fd: fd, refs: 1}, nil
		case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
			unix.Close(fd)
		default:
			unix.Unlink(path)
			unix.Close(fd)
			return nil, fmt.Errorf("%w (%w)", ErrUnsupported, err)
		}
	}
	return nil, fmt.Errorf("%s: all names are taken: %w", fileName(self, 0), unix.EEXIST)
}

// Release gives the lock back once; the last one removes the file. Nothing happens without a lock.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	own.Lock()
	defer own.Unlock()
	if l.refs--; l.refs != 0 {
		return
	}
	delete(own.locks, l.dir)
	if SameFile(l.fd, l.path) {
		unix.Unlink(l.path)
	}
	unix.Close(l.fd) // and with it the lock
}

// Owner finds whether a process of a user has a lock in a directory, and returns
// its process id in this pid namespace, 0 if it has none here. p is as the process
// sees itself; a start of 0 fits any. What cannot be read counts as locked.
func Owner(dir string, uid uint32, p proc.Process) (pid uint32, locked bool) {
	self, err := proc.This()
	if err != nil {
		return 0, true
	}
	if p.PID == self.Self.PID && (p.Start == self.Self.Start || p.Start == 0) {
		return p.PID, true
	}
	if p.Start != 0 {
		for n := 0; n < copies && !locked; n++ {
			pid, locked = ownerOf(filepath.Join(dir, fileName(p, n)), uid)
		}
		return pid, locked
	}
	for _, name := range list(dir) {
		if strings.HasPrefix(name, prefix(p)) && !locked {
			pid, locked = ownerOf(filepath.Join(dir, name), uid)
		}
	}
	return pid, locked
}

// list returns the names of the lock files in a directory.
func list(dir string) (names []string) {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	all, _ := d.Readdirnames(-1)
	for _, name := range all {
		if _, ok := parse(name); ok {
			names = append(names, name)
		}
	}
	return names
}

// ownerOf is Owner for one file, which is not this process's.
func ownerOf(path string, uid uint32) (pid uint32, locked bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		var st unix.Stat_t
		return 0, unix.Lstat(path, &st) == nil && st.Uid == uid
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Uid != uid || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, false
	}
	l := wholeFile()
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &l); err != nil {
		return 0, true
	}
	return uint32(max(l.Pid, 0)), l.Type != unix.F_UNLCK
}

// Stale lists the lock files in a directory that are of processes that have ended.
func Stale(dir string) (paths []string) {
	for _, name := range list(dir) {
		path := filepath.Join(dir, name)
		var st unix.Stat_t
		if mine(name) || unix.Lstat(path, &st) != nil {
			continue
		}
		if _, locked := ownerOf(path, st.Uid); !locked {
			paths = append(paths, path)
		}
	}
	return paths
}

// Remove removes a lock file if its process has ended, and reports whether it did.
// Only its owner and root may.
func Remove(path string) bool {
	name := filepath.Base(path)
	if _, ok := parse(name); !ok || mine(name) {
		return false
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return setLock(fd) == nil && SameFile(fd, path) && unix.Unlink(path) == nil
}

// Forget removes the lock files of a process that has ended.
func Forget(dir string, p proc.Process) {
	for n := range copies {
		Remove(filepath.Join(dir, fileName(p, n)))
	}
}

// mine reports whether a file is one of this process's, which it must not open.
func mine(name string) bool {
	h, err := proc.This()
	p, _ := parse(name)
	return err != nil || p == h.Self
}

func setLock(fd int) error {
	l := wholeFile()
	return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &l)
}

// wholeFile is an exclusive lock.
func wholeFile() unix.Flock_t { return unix.Flock_t{Type: unix.F_WRLCK} }

// SameFile reports whether path leads to the open file.
func SameFile(fd int, path string) bool {
	var opened, named unix.Stat_t
	return unix.Fstat(fd, &opened) == nil && unix.Lstat(path, &named) == nil &&
		opened.Dev == named.Dev && opened.Ino == named.Ino
}
