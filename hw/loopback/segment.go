package loopback

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// segment is a mapped segment, our own or a peer's. Its fields are immutable
// until the mapping goes; the words in the mapping are shared.
type segment struct {
	geo  geometry
	id   identity
	path string // of the file's own name
	dev  uint64 // of the file, with ino
	ino  uint64
	mem  mapping
}

// createSegment makes the file, maps it and gives it its name. Errors: EADDRINUSE
// when a live interface has the name, ENOSPC when the file system is full.
func createSegment(h *host, name sockaddr, c *Config) (*segment, error) {
	dir, geo := h.dir, newGeometry(c)
	if c.Cookie == 0 {
		c.Cookie = newCookie()
	}
	s := &segment{
		geo: geo,
		id: identity{
			cookie: c.Cookie, owner: h.self, bootID: h.bootID, netns: h.netns, user: h.user,
			name: name, all: c.Any, locked: h.locked, across: h.across,
		},
		path: place{h.netns, name}.path(h),
	}
	fd, temp, err := createNameless(dir)
	if err != nil {
		return nil, fmt.Errorf("loopback: create a segment in %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if temp != "" {
		defer unix.Unlink(temp)
	}
	if err := s.fill(fd); err != nil {
		return nil, fmt.Errorf("loopback: segment of %d bytes in %s: %w", geo.bytes, dir, err)
	}
	for n, k := range c.secrets() {
		*s.proof(uint32(n)) = ownerProof(k.Secret, s.id.cookie)
	}
	if temp == "" {
		temp = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	if err := s.publish(temp, h); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

func newCookie() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:])
		if c := binary.LittleEndian.Uint64(b[:]); c != 0 {
			return c
		}
	}
}

// createNameless opens a file without a name, or with a temporary one where
// the file system knows no others.
func createNameless(dir string) (fd int, temp string, err error) {
	fd, err = unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil || err != unix.EOPNOTSUPP && err != unix.EISDIR {
		return fd, "", err
	}
	return createTemporary(dir)
}

func createTemporary(dir string) (fd int, temp string, err error) {
	temp = filepath.Join(dir, ".weft."+strconv.FormatUint(newCookie(), 16))
	fd, err = unix.Open(temp, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	return fd, temp, err
}

// fill reserves the file's memory, maps it and writes the header.
func (s *segment) fill(fd int) error {
	if err := unix.Fchmod(fd, 0o600); err != nil { // whatever the umask
		return fmt.Errorf("chmod: %w", err)
	}
	if err := reserve(fd, int64(s.geo.bytes)); err != nil {
		return fmt.Errorf("reserve memory: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	s.dev, s.ino = st.Dev, st.Ino
	var err error
	if s.mem, err = ownRanges.mapFile(fd, s.geo.bytes); err != nil {
		return fmt.Errorf("map: %w", err)
	}
	*s.header() = s.geo.header(&s.id)
	return nil
}

// reserve makes the file size bytes long with all memory allocated, so that a
// full file system is an error here and not a SIGBUS later.
func reserve(fd int, size int64) error {
	if err := mem.FileSize(size); err != nil {
		return err
	}
	for {
		switch err := unix.Fallocate(fd, 0, 0, size); err {
		case unix.EINTR:
			continue
		case unix.EOPNOTSUPP:
			return writeZeros(fd, size)
		default:
			return err
		}
	}
}

func writeZeros(fd int, size int64) error {
	var zeros [1 << 16]byte
	for at := int64(0); at < size; {
		n, err := unix.Pwrite(fd, zeros[:min(int64(len(zeros)), size-at)], at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// publish gives the file its names.
func (s *segment) publish(from string, h *host) error {
	for _, path := range s.id.paths(h.dir) {
		if err := link(from, path, h); err != nil {
			return err
		}
	}
	return nil
}

// link gives a file a name. A file of that name whose owner is dead is removed
// first.
func link(from, path string, h *host) error {
	for range 100 {
		err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		if err == nil {
			return nil
		}
		if err != unix.EEXIST {
			return fmt.Errorf("loopback: name the segment %s: %w", path, err)
		}
		if !removeStale(path, h, flockPatience) {
			break
		}
	}
	return fmt.Errorf("loopback: segment %s: %w", path, unix.EADDRINUSE)
}

// discard removes a segment that was not used. Peers may have found it.
func (s *segment) discard() {
	atomic.OrUint32(s.rxState(), hot.RxGone)
	s.remove()
	s.mem.retire(&ownRanges)
}

// openPeer maps the segment of the live interface at name. A segment whose
// owner is dead is removed. Errors wrap hw.ErrUnreachable, ErrPermission,
// ErrInvalid (malformed), or an errno (EMFILE, ENOMEM and the like).
func openPeer(h *host, name sockaddr) (*segment, error) {
	var first error
	for _, at := range h.places(name) {
		s, err := openLive(h, name, at)
		if err == nil || !isGone(err) {
			return s, err
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// openLive is openPeer for the file at a place.
func openLive(h *host, name sockaddr, at place) (*segment, error) {
	s, err := openNamed(h, name, at, peerRanges.mapFile)
	if err != nil {
		return nil, err
	}
	switch {
	case !h.alive(s.id.owner):
		removeStale(at.path(h), h, flockPatience)
		err = fmt.Errorf("loopback: segment %s: process %d has ended: %w", s.path, s.id.owner.pid, hw.ErrUnreachable)
	case s.gone():
		err = fmt.Errorf("loopback: segment %s is being closed: %w", s.path, hw.ErrUnreachable)
	default:
		return s, nil
	}
	s.mem.retire(&peerRanges)
	return nil, err
}

// openNamed maps the segment in the file at a place, if it was made for the
// interface at name, even if its owner has ended meanwhile, and checks that it
// is what it claims to be. mapper maps it. Errors as openPeer's.
func openNamed(h *host, name sockaddr, at place, mapper func(int, uint64) (mapping, error)) (*segment, error) {
	s := &segment{path: at.path(h)}
	fd, err := unix.Open(s.path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("loopback: open segment %s: %w", s.path, openError(err))
	}
	defer unix.Close(fd)
	if err := s.examine(fd, h, at.netns); err != nil {
		return nil, fmt.Errorf("loopback: segment %s: %w", s.path, err)
	}
	if !answers(&s.id.name, s.id.all, &name) || at.netns == anyNetNS && s.id.name != name {
		return nil, fmt.Errorf("loopback: segment %s belongs to %s: %w", s.path, s.id.name.String(), hw.ErrUnreachable)
	}
	if s.mem, err = mapper(fd, s.geo.bytes); err != nil {
		return nil, fmt.Errorf("loopback: map segment %s: %w", s.path, err)
	}
	s.path = place{s.id.netns, s.id.name}.path(h) // the doorbell is beside it
	return s, nil
}

func openError(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return hw.ErrUnreachable
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w (%w)", hw.ErrPermission, err)
	}
	return err
}

// examine checks the file and its header, all but name and liveness. netns is the network
// namespace that it has to be of, or anyNetNS.
func (s *segment) examine(fd int, h *host, netns uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("not a regular file: %w", hw.ErrPermission)
	case st.Uid != h.uid:
		return fmt.Errorf("belongs to user %d: %w", st.Uid, hw.ErrPermission)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("open to others, mode %o: %w", st.Mode&0o777, hw.ErrPermission)
	}
	s.dev, s.ino = st.Dev, st.Ino
	header, err := readHeader(fd)
	if err != nil {
		return err
	}
	s.geo, s.id, err = parseHeader(header, uint64(st.Size))
	if err != nil {
		return fmt.Errorf("%w: %w", hw.ErrInvalid, err)
	}
	switch {
	case s.id.bootID != h.bootID:
		return fmt.Errorf("made before the last boot: %w", hw.ErrUnreachable)
	case netns != anyNetNS && s.id.netns != netns:
		return fmt.Errorf("made in another network namespace: %w", hw.ErrUnreachable)
	case (s.id.owner.pidns != h.pidns || h.blind) && !(s.id.locked && h.locked):
		return fmt.Errorf("made in another pid namespace, and without locks it is not known which processes run "+
			"there: %w", hw.ErrUnreachable)
	case s.id.user != h.user:
		return fmt.Errorf("made by user %d: %w", s.id.user, hw.ErrPermission)
	}
	return nil
}
