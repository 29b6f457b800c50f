package loopback

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SegmentState says whether a segment is in use.
type SegmentState int

// States of segments.
const (
	SegmentLive    SegmentState = iota // its process runs
	SegmentDead                        // its process has ended, or the host was booted since
	SegmentUnknown                     // of another version, of another pid namespace and without a lock, or unreadable
)

// String returns the state's name.
func (s SegmentState) String() string { return [...]string{"live", "dead", "unknown"}[s] }

// SegmentInfo describes a segment's file.
type SegmentInfo struct {
	Path  string
	UID   uint32 // of the file
	PID   uint32 // 0: unknown
	Name  string // address and port
	Bytes int64  // of the file
	State SegmentState
	ino   uint64 // 0: unknown
}

// Survey lists the segments in a directory, those of other users only as far as
// they can be read, each once, whatever its names.
func Survey(dir string) ([]SegmentInfo, error) {
	h, err := thisHost(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("loopback: survey: %w", err)
	}
	var list []SegmentInfo
	seen := map[uint64]bool{}
	for _, e := range entries {
		if !isSegment(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		s := survey(filepath.Join(dir, e.Name()), h)
		if s.ino == 0 || !seen[s.ino] {
			list = append(list, s)
		}
		seen[s.ino] = true
	}
	return list, nil
}

func survey(path string, h host) SegmentInfo {
	s := SegmentInfo{Path: path, State: SegmentUnknown}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return s
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return s
	}
	s.UID, s.Bytes, s.ino = st.Uid, st.Size, st.Ino
	h.uid = st.Uid // the lock's owner
	header, err := readHeader(fd)
	if err != nil {
		return s
	}
	if _, id, err := parseHeader(header, uint64(st.Size)); err == nil {
		s.PID, s.Name = id.owner.pid, id.name.String()
		if abandoned(header, &h) {
			s.State = SegmentDead
		} else if header.PIDNamespace == h.pidns || id.locked {
			s.State = SegmentLive
		}
	}
	return s
}

// RemoveDead removes the segment at path, with its other names and its doorbell,
// if its process has ended, and reports whether it is gone. Only the owner of the
// file and root may.
func RemoveDead(path string) (bool, error) {
	h, err := thisHost(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	return removeStaleOf(path, &h), nil
}

// Taken reports whether a live interface in a directory that is reached from every
// network namespace has an address.
func Taken(dir string, addr []byte) bool {
	name, err := parseSockaddr(addr)
	if err != nil {
		return false
	}
	h, err := thisHost(dir)
	if err != nil {
		return false
	}
	path := place{anyNetNS, name}.path(&h)
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && !removeStale(path, &h, 0)
}
