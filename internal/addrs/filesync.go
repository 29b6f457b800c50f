package addrs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
)

// The bytes that are locked; see file.
const (
	lockUsers   = 0
	lockEntries = 1
)

// lockPause is the pause between two tries of a lock that another process
// has; it is taken for microseconds.
const lockPause = 50 * time.Microsecond

// errLocked is the failure to wait any longer.
var errLocked = fmt.Errorf("locked by another process: %w", fi.ETIMEDOUT)

// tryLock takes, changes or (F_UNLCK) gives back the lock on one byte. False
// means that another user of the file is in the way.
func (s *file) tryLock(at int64, kind int16) (bool, error) {
	lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1}
	for {
		switch err := unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_SETLK, &lock); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EAGAIN, unix.EACCES:
			return false, nil
		default:
			return false, fmt.Errorf("lock: %w", err)
		}
	}
}

// waitLock takes the lock for changes, and waits for another process, with a pause between two tries, but not forever:
// that may be stopped.
func (s *file) waitLock(pause func()) (bool, error) {
	for deadline := time.Now().Add(s.timeout); ; pause() {
		ok, err := s.tryLock(lockEntries, unix.F_WRLCK)
		if ok || err != nil || time.Now().After(deadline) {
			return ok, err
		}
	}
}

// lock begins a change. fi.ETIMEDOUT if another process does not end its. The caller has v, which is unlocked while it
// waits, so that lookups do not. died reports that a writer has died within a change.
func (s *file) lock(v sync.Locker) (died bool, err error) {
	ok, err := s.waitLock(func() {
		v.Unlock()
		time.Sleep(lockPause)
		v.Lock()
	})
	if err != nil {
		return false, err
	}
	if !ok {
		return false, errLocked
	}
	if died = atomic.LoadUint64(&s.header.dirty) != 0; died {
		atomic.AddUint64(&s.header.generation, 1) // its writer died before it did
	}
	atomic.StoreUint64(&s.header.dirty, 1)
	return died, nil
}

// unlock ends a change. sync was called since lock, and has shown all.
func (s *file) unlock() {
	s.synced.Store(atomic.AddUint64(&s.header.generation, 1))
	atomic.StoreUint64(&s.header.dirty, 0)
	s.abandon()
}

// abandon ends a change in which no entry was changed, and leaves the header as a process that dies does.
func (s *file) abandon() {
	if _, err := s.tryLock(lockEntries, unix.F_UNLCK); err != nil {
		log.Warnf(log.AV, "unlock %s: %v", s.path, err)
	}
}

// changed reports whether another process has changed entries. Any thread.
func (s *file) changed() bool {
	return atomic.LoadUint64(&s.header.generation) != s.synced.Load()
}

// syncEntries is how many entries are read at once.
const syncEntries = 2048

// sync calls take for each index that is unset now or has another name, then
// put for each that has a name now, and reports whether it called any. The
// caller has the address vector's lock, and with locked that for changes. It does not wait: of a change that is under
// way it takes over what entries show already. An error leaves some changes for the next call, fi.EAGAIN those of
// entries that change now.
func (s *file) sync(locked bool, take func(i uint64), put func(i uint64, n packed)) (changed bool, err error) {
	generation := atomic.LoadUint64(&s.header.generation)
	if generation == s.synced.Load() {
		return false, nil
	}
	limit := min(atomic.LoadUint64(&s.header.limit), s.capacity)
	r := entryReader{file: s, locked: locked, generation: generation}
	for first := uint64(0); first < limit; first += syncEntries {
		n := min(syncEntries, limit-first)
		if err := r.read(first, n); err != nil {
			return changed, fmt.Errorf("read entries: %w", err)
		}
		for k := range n {
			if seq, name, ok := r.entry(k); ok {
				changed = s.takeOver(first+k, seq, name, take, put) || changed
			}
		}
	}
	if r.moving {
		return changed, fmt.Errorf("entries change: %w", fi.EAGAIN)
	}
	s.synced.Store(generation)
	return changed, nil
}

// takeOver compares one entry with what the private tables show.
func (s *file) takeOver(i, seq uint64, name packed, take func(uint64), put func(uint64, packed)) bool {
	for i >= uint64(len(s.seen)) {
		s.seen = append(s.seen, 0)
	}
	old := s.seen[i]
	if seq == old {
		return false
	}
	if seq&1 != 0 && !name.valid() {
		log.Warnf(log.AV, "%s: entry %d is not an address", s.path, i)
		name = noName
	}
	s.seen[i] = seq
	if old&1 != 0 {
		take(i)
	}
	if seq&1 != 0 {
		put(i, name)
	}
	return old&1 != 0 || seq&1 != 0
}

// insert writes a name to an unset entry. lock and sync were called. Errors are
// the system's: fi.ENOSPC.
func (s *file) insert(i uint64, n packed) error {
	for uint64(len(s.seen)) <= i {
		s.seen = append(s.seen, 0)
	}
	var b [entryBytes]byte
	seq := (s.seen[i] + 1) | 1
	encodeEntry(b[:], seq, n)
	err := s.fill(i + 2)
	if err == nil {
		err = pwriteAll(s.fd, b[8:], s.entryOffset(i)+8)
	}
	if err == nil {
		err = s.writeArray(i, i)
	}
	if err != nil {
		return fmt.Errorf("write entry %d: %w", i, err)
	}
	if i >= atomic.LoadUint64(&s.header.limit) {
		atomic.StoreUint64(&s.header.limit, i+1)
	}
	if err := pwriteAll(s.fd, b[:8], s.entryOffset(i)); err != nil {
		_ = s.writeArray(i, math.MaxUint64) // it fails where that did
		return fmt.Errorf("write entry %d: %w", i, err)
	}
	s.seen[i] = seq
	return nil
}

// remove unsets a set entry. lock and sync were called. The memory that it
// writes to exists, so that only the loss of the file itself can fail it.
func (s *file) remove(i uint64) {
	seq := s.seen[i] + 1
	b := binary.LittleEndian.AppendUint64(nil, seq)
	if err := errors.Join(s.writeArray(i, math.MaxUint64), pwriteAll(s.fd, b, s.entryOffset(i))); err != nil {
		log.Warnf(log.AV, "remove entry %d of %s: %v", i, s.path, err)
	}
	s.seen[i] = seq
}

func (s *file) entryOffset(i uint64) int64 {
	return entriesOffset(s.capacity) + int64(i)*entryBytes
}

func encodeEntry(b []byte, seq uint64, n packed) {
	binary.LittleEndian.PutUint64(b, seq)
	for i, w := range n {
		binary.LittleEndian.PutUint64(b[8+8*i:], w)
	}
}

func decodeEntry(b []byte) (seq uint64, n packed) {
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(b[8+8*i:])
	}
	return binary.LittleEndian.Uint64(b), n
}

// encodeHeader returns the first page of an empty address vector. The first
// generation is 1, so that a private table that shows nothing is older.
func encodeHeader(capacity uint64) []byte {
	b := make([]byte, headerPage)
	le := binary.LittleEndian
	le.PutUint64(b[0:], fileMagic)
	le.PutUint32(b[8:], fileVersion)
	le.PutUint32(b[12:], entryBytes)
	le.PutUint64(b[16:], capacity)
	le.PutUint64(b[64:], 1)
	return b
}

// decodeHeader checks the immutable words of a first page and returns the
// capacity. Errors wrap fi.EINVAL.
func decodeHeader(b []byte) (capacity uint64, err error) {
	le := binary.LittleEndian
	magic, version, entry := le.Uint64(b[0:]), le.Uint32(b[8:]), le.Uint32(b[12:])
	capacity = le.Uint64(b[16:])
	switch {
	case magic != fileMagic:
		return 0, fmt.Errorf("not an address vector: %w", fi.EINVAL)
	case version != fileVersion || entry != entryBytes:
		return 0, fmt.Errorf("version %d with entries of %d bytes, want %d and %d: %w",
			version, entry, fileVersion, entryBytes, fi.EINVAL)
	case capacity == 0 || capacity > maxEntries:
		return 0, fmt.Errorf("%d entries: %w", capacity, fi.EINVAL)
	}
	return capacity, nil
}

func pwriteAll(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

func preadAll(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pread(fd, b, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}
