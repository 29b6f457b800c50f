package stats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/proc"
)

// Snapshot is one process's page at one instant.
type Snapshot struct {
	Path      string
	PID       uint32
	UID       uint32 // proc.Host.User
	Start     uint64 // clock ticks since boot
	BootID    [2]uint64
	PIDNS     uint64
	Created   time.Time
	Taken     time.Time
	Weft      string // version
	Command   string
	Values    []uint64 // by index in Table; of those at the level of the process
	Endpoints []EndpointSnapshot

	unlocked bool // the page's process holds a lock while it lives, and none had it
}

// EndpointSnapshot is one endpoint.
type EndpointSnapshot struct {
	Name   string // address and port
	Opened int64  // differs in two endpoints of one name
	Values []uint64
	Peers  []PeerSnapshot
}

// PeerSnapshot is one peer of an endpoint.
type PeerSnapshot struct {
	Name   string
	Up     bool
	Values []uint64
}

// Errors of reading.
var (
	// ErrMalformed is wrapped when a file is not a page.
	ErrMalformed = errors.New("not a page of counters")
	// ErrVersion is wrapped when a page is of another version of weft.
	ErrVersion = errors.New("page of counters of another version of weft")
	// ErrPermission is wrapped when a page belongs to another user, or may have been written by another.
	ErrPermission = errors.New("page of counters not to be trusted")
)

// List returns the names of the pages in a directory that belong to a user, or
// of all if all is true. Reading one may fail all the same: its process may
// have ended.
func List(dir string, uid uint32, all bool) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("list pages of counters: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list pages of counters in %s: %w", dir, err)
	}
	var list []string
	for _, n := range names {
		if owner, _, _, err := parseFileName(n); err == nil && (all || owner == uid) {
			list = append(list, filepath.Join(dir, n))
		}
	}
	slices.Sort(list)
	return list, nil
}

// Read reads a page. Errors wrap ErrMalformed, ErrVersion, ErrPermission or an
// errno, fs.ErrNotExist when the process has ended. With ErrVersion the
// snapshot has the process's identity.
func Read(path string) (*Snapshot, error) { return read(path, fileBytes) }

// identify reads as much of a page as says whose it is, and the counters of the process: an opening process reads all
// pages of its user, and a whole one is hundreds of KiB.
func identify(path string) (*Snapshot, error) { return read(path, headerBytes) }

// read is Read of the first bytes of a page, the header at least.
func read(path string, limit int64) (*Snapshot, error) {
	uid, pidns, pid, err := parseFileName(filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrMalformed, err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "read page of counters", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("%s: stat: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || proc.OuterUID(st.Uid) != uid || st.Mode&0o022 != 0 {
		return nil, fmt.Errorf("%s: mode %o of user %d: %w", path, st.Mode, st.Uid, ErrPermission)
	}
	image := make([]byte, min(st.Size, limit))
	n, err := readAll(fd, image)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, err := parse(image[:n])
	if s != nil {
		s.Path, s.Taken, s.unlocked = path, time.Now(), unlocked(image[:n], fd)
		if err == nil && (s.UID != uid || s.PIDNS != pidns || s.PID != pid) {
			return nil, fmt.Errorf("%s: is the page of process %d: %w", path, s.PID, ErrMalformed)
		}
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// readAll reads as far as the file goes.
func readAll(fd int, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		got, err := unix.Pread(fd, b[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil || got == 0 {
			return n, err
		}
		n += got
	}
	return n, nil
}

// image is a copy of a page. Its accessors are given offsets that lie in it.
type image []byte

func (b image) u32(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
func (b image) u64(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// text reads a field that zeros pad. What is not printable ASCII becomes '?':
// it is shown on terminals.
func (b image) text(at, n int) string {
	raw := string(b[at : at+n])
	if i := strings.IndexByte(raw, 0); i >= 0 {
		raw = raw[:i]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, raw)
}

// parse reads a copy of a page, which may hold anything. Errors wrap
// ErrMalformed, or ErrVersion; then the snapshot says whose page it is.
func parse(b image) (*Snapshot, error) {
	if len(b) < headerBytes || b.u64(offMagic) != magic {
		return nil, fmt.Errorf("%d bytes: %w", len(b), ErrMalformed)
	}
	s := &Snapshot{
		PID: b.u32(offPID), UID: b.u32(offUID), Start: b.u64(offStart),
		BootID: [2]uint64{b.u64(offBootID), b.u64(offBootID + 8)}, PIDNS: b.u64(offPIDNS),
		Created: time.Unix(0, int64(b.u64(offCreated))), Weft: b.text(offWeft, 32), Command: b.text(offCommand, 32),
	}
	if v := b.u32(offVersion); v != Version || b.u64(offTable) != hash() {
		return s, fmt.Errorf("page version %d of weft %s: %w", v, s.Weft, ErrVersion)
	}
	if int(b.u32(offBytes)) != fileBytes {
		return nil, fmt.Errorf("%d bytes in the header: %w", b.u32(offBytes), ErrMalformed)
	}
	s.Values = b.values(Process, 0)
	for i := range MaxEndpoints {
		at := headerBytes + i*blockBytes
		if len(b) < at+blockBytes {
			break
		}
		block := b[at : at+blockBytes]
		if block.u32(0) == 1 {
			s.Endpoints = append(s.Endpoints, block.endpoint())
		}
	}
	return s, nil
}

func (b image) endpoint() EndpointSnapshot {
	e := EndpointSnapshot{Name: b.address(4, 16), Opened: int64(b.u64(8)), Values: b.values(Rx, 0)}
	for i := range MaxPeers {
		at := peersAt + i*peerBytes
		state := b.u32(at)
		if state != peerUp && state != peerDown {
			continue
		}
		e.Peers = append(e.Peers, PeerSnapshot{
			Name: b.address(at+4, at+8), Up: state == peerUp, Values: b.values(Peer, at),
		})
	}
	return e
}

// values sums the words of the counters at a level. at is that of the peer.
func (b image) values(level Area, at int) []uint64 {
	list := make([]uint64, len(table))
	for i := range table {
		if table[i].Level() != level {
			continue
		}
		for _, p := range table[i].At {
			list[i] += b.sum(p, at)
		}
	}
	return list
}

// sum reads one place: of threads and stripes, the sum of their lines.
func (b image) sum(p Place, peer int) (n uint64) {
	w := p.Word * wordBytes
	switch p.Area {
	case Process:
		return b.u64(processAt + w)
	case Rx:
		return b.u64(rxAt + w)
	case Shared:
		return b.u64(sharedAt + w)
	case Peer:
		return b.u64(peer + peerWordsAt + w)
	}
	base := threadsAt
	if p.Area == Stripe {
		base = stripesAt
	}
	for line := range Lines {
		n += b.u64(base + line*LineWords*wordBytes + w)
	}
	return n
}

// address writes a socket address as people do, and a name of one word as a number; length and bytes are at the
// given places. What is none is "?".
func (b image) address(length, at int) string {
	n := int(b.u32(length))
	if n == wordBytes {
		return fmt.Sprintf("%#x", b.u64(at))
	}
	if n > maxAddr || n < sizeIPv4 {
		return "?"
	}
	raw := b[at : at+n]
	port := binary.BigEndian.Uint16(raw[2:])
	var ip netip.Addr
	size := sizeIPv4
	switch family := binary.LittleEndian.Uint16(raw); {
	case family == unix.AF_INET:
		ip = netip.AddrFrom4([4]byte(raw[4:8]))
	case family == unix.AF_INET6 && n >= sizeIPv6:
		size = sizeIPv6
		ip = netip.AddrFrom16([16]byte(raw[8:24]))
		if scope := binary.LittleEndian.Uint32(raw[24:]); scope != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
	default:
		return "?"
	}
	text := netip.AddrPortFrom(ip, port).String()
	if n == size+sizeNumber {
		text += "." + strconv.FormatUint(uint64(raw.u32(size)), 10)
	}
	return text
}

// Value returns a counter by name: of the process, or the sum over its
// endpoints (for a Peak, the highest).
func (s *Snapshot) Value(name string) uint64 {
	var total uint64
	for i := range table {
		if table[i].Name != name {
			continue
		}
		if table[i].Level() == Process && s.Values != nil {
			return s.Values[i]
		}
		for _, e := range s.Endpoints {
			if table[i].Kind == Peak {
				total = max(total, e.Values[i])
			} else {
				total += e.Values[i]
			}
		}
	}
	return total
}

// Alive reports whether the process that wrote the page still runs. Of those in other
// pid namespaces the page's lock shows it; without one they count as alive.
func (s *Snapshot) Alive(h *proc.Host) bool {
	switch {
	case s.BootID != h.BootID:
		return false
	case s.PIDNS != h.PIDNS || h.Blind:
		return !s.unlocked
	}
	return proc.Process{PID: s.PID, Start: s.Start}.Alive()
}
