package addrs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/proclock"
)

// file is the file behind a named address vector. Every process that has it
// open keeps private tables and takes over from the file what others changed,
// so that nothing a peer writes is read on the data path but one word.
//
// The file is owner-only and lies where the segments lie:
//
//	header (one page) | fi_addr_t array | entries of 32 bytes
//
// The array is for applications. It has the index of each set entry at its place, and fi.AddrNotAvail elsewhere among
// its first filled words; the rest are holes of the file. Those words are as many as an opener that may change entries
// has said that it wants, and reach beyond the highest index ever used, by one at least.
//
// # Locks
//
// All are open file description locks (fcntl(2)), which the kernel takes back
// from a process that dies:
//
//	byte 0, shared     had by every user for as long as it is one
//	byte 0, exclusive  the file has no user: it may be initialised or removed
//	byte 1, exclusive  changing the entries, or leaving
//
// Entries are read without a lock, so that no lookup waits for a process that is stopped within a
// change: once where the header shows that no change was under way, else thrice. The name of an entry changes only
// while its sequence number is even, and each change adds one to that: a name that was read between two equal odd
// numbers is that of both. A change waits until another's is over, but not forever, and does not take over what a
// stopped process has begun: that may go on at any time.
//
// A process that dies while it changes an entry leaves it unset, because the
// entry's sequence number is written last; and it leaves the header's dirty
// word set, by which the next writer knows that the generation may not show
// all changes, and the array not all entries. A file that only dead processes used is found unused by the
// next that opens an address vector, and initialised or removed.
//
// # Hostile peers
//
// Only the user's own processes can open the file. What they write is checked
// when it is taken over: an entry that is no name has no name here, and its index is in use. A process of
// the same user that truncates the file causes SIGBUS in others; it could as
// well have sent a signal.
type file struct {
	fd       int
	path     string
	readOnly bool
	capacity uint64        // entries, immutable once open
	timeout  time.Duration // for a lock that another process holds
	header   *fileHeader   // mapped
	array    []byte        // the mapped fi_addr_t array, which only the application reads

	// synced is the generation that the private tables show. Stored by the
	// holder of the address vector's lock, loaded by any thread.
	synced atomic.Uint64
	// seen is the sequence number of each entry as the private tables show
	// it. Guarded by the address vector's lock, as is writing.
	seen []uint64
	// logged is the generation whose changes could not be taken over, as the log has it. Guarded likewise.
	logged uint64
}

// fileHeader is the first page of the file.
type fileHeader struct {
	magic    uint64 // written last when the file is initialised
	version  uint32
	entry    uint32 // bytes
	capacity uint64 // entries
	_        [5]uint64

	// The rest is written by the holder of byte 1 and read by any process.
	// generation changes after the entries did.
	generation uint64
	limit      uint64 // one more than the highest index ever used
	dirty      uint64 // 1 while entries change
	filled     uint64 // words of the array that have been written
}

const (
	fileMagic   = 0x61762d7466657701
	fileVersion = 2
	entryBytes  = 32
	headerPage  = 4096
	maxEntries  = 1 << 26 // the range of FI_WEFT_AV_SIZE_MAX
	arrayStep   = 512     // words that are filled at once: a page

	// FilePrefix starts the names of the files of all shared vectors.
	FilePrefix = "weft-av."
)

func arrayOffset() int64 { return headerPage }

// entriesOffset returns where the entries start; the array is whole pages.
func entriesOffset(capacity uint64) int64 {
	return headerPage + int64((capacity*8+headerPage-1)&^(headerPage-1))
}

func fileSize(capacity uint64) int64 {
	return entriesOffset(capacity) + int64(capacity)*entryBytes
}

// fileStart is what the names of all files of this user in this network
// namespace start with: addresses mean something within one namespace.
func fileStart() (string, error) {
	h, err := proc.This()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%d.%d.", FilePrefix, h.User, h.NetNS), nil
}

// openFile opens the file of a named address vector of a domain, and makes
// it unless readOnly.
func openFile(o *Options) (*file, error) {
	start, err := fileStart()
	if err != nil {
		return nil, err
	}
	for _, path := range Stale(o.Dir, false) {
		RemoveStale(path)
	}
	sum := sha256.Sum256([]byte(o.Domain + "\x00" + o.Name))
	path := filepath.Join(o.Dir, start+hex.EncodeToString(sum[:16]))
	deadline := time.Now().Add(o.Timeout)
	for {
		s := &file{fd: -1, path: path, readOnly: o.ReadOnly, timeout: o.Timeout}
		again, err := s.open(o.Capacity)
		if err == nil && !again {
			return s, nil
		}
		s.unmap()
		if s.fd >= 0 {
			unix.Close(s.fd) // and with it the locks
		}
		if !again || time.Now().After(deadline) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		time.Sleep(lockPause)
	}
}

// open opens the file once. again means that it was not in a state to be
// opened, which may pass, and err how it was.
func (s *file) open(capacity uint64) (again bool, err error) {
	flags := unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	if !s.readOnly {
		flags |= unix.O_CREAT
	}
	s.fd, err = unix.Open(s.path, flags, 0o600)
	if errors.Is(err, unix.ELOOP) {
		err = fi.EACCES
	}
	if err != nil {
		return false, fmt.Errorf("open: %w", err)
	}
	if err := checkFile(s.fd); err != nil {
		return false, err
	}
	unused, err := s.tryLock(lockUsers, unix.F_WRLCK)
	if err != nil {
		return false, err
	}
	if !unused {
		return s.join()
	}
	if !proclock.SameFile(s.fd, s.path) {
		return true, fi.EAGAIN
	}
	if s.readOnly {
		unix.Unlink(s.path) // its users are dead
		return false, fmt.Errorf("no process has it open: %w", fi.ENOENT)
	}
	if err := s.initialise(capacity); err != nil {
		unix.Unlink(s.path)
		return false, err
	}
	if _, err := s.tryLock(lockUsers, unix.F_RDLCK); err != nil {
		return false, err
	}
	return false, s.mapIt()
}

// join becomes a user of a file that has users.
func (s *file) join() (again bool, err error) {
	if ok, err := s.tryLock(lockUsers, unix.F_RDLCK); !ok || err != nil {
		return err == nil, errors.Join(err, errLocked)
	}
	if !proclock.SameFile(s.fd, s.path) {
		return true, fi.EAGAIN
	}
	if err := s.checkHeader(); err != nil {
		return true, err // its creator may have died before it was initialised
	}
	return false, s.mapIt()
}

// checkFile refuses what is not an owner-only file of this user.
func checkFile(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("not a regular file: %w", fi.EACCES)
	case st.Uid != uint32(os.Geteuid()):
		return fmt.Errorf("belongs to user %d: %w", st.Uid, fi.EACCES)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("open to others, mode %o: %w", st.Mode&0o777, fi.EACCES)
	}
	return nil
}

// initialise makes the file an empty address vector. The caller has byte 0 exclusively.
func (s *file) initialise(capacity uint64) error {
	for _, size := range []int64{0, fileSize(capacity)} {
		err := mem.FileSize(size)
		if err == nil {
			err = unix.Ftruncate(s.fd, size)
		}
		if err != nil {
			return fmt.Errorf("set size: %w", err)
		}
	}
	// The whole page, so that it exists when it is mapped.
	if err := pwriteAll(s.fd, encodeHeader(capacity), 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	s.capacity = capacity
	return nil
}

// checkHeader checks the immutable part of the header against the file.
func (s *file) checkHeader() error {
	b := make([]byte, headerPage)
	if err := preadAll(s.fd, b, 0); err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	capacity, err := decodeHeader(b)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if st.Size != fileSize(capacity) {
		return fmt.Errorf("%d bytes for %d entries: %w", st.Size, capacity, fi.EINVAL)
	}
	s.capacity = capacity
	return nil
}

// close stops using the file; the last user removes it.
func (s *file) close() error {
	// Byte 1, so that of two processes that leave at once the second sees the first gone.
	locked, err := s.waitLock(func() { time.Sleep(lockPause) })
	if locked && err == nil {
		last, err := s.tryLock(lockUsers, unix.F_WRLCK)
		if last && err == nil && proclock.SameFile(s.fd, s.path) {
			unix.Unlink(s.path)
		} else {
			_, _ = s.tryLock(lockUsers, unix.F_UNLCK)
		}
	}
	s.unmap()
	if cerr := unix.Close(s.fd); err == nil {
		err = cerr
	}
	return err
}
