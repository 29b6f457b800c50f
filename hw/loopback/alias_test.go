package loopback

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// at is a socket address; an address of 4 bytes is an IPv4 one.
func at(port uint16, ip ...byte) []byte {
	b := make([]byte, sizeIPv4)
	family, where := uint16(unix.AF_INET), 4
	if len(ip) != 4 {
		b = make([]byte, sizeIPv6)
		family, where = unix.AF_INET6, 8
	}
	binary.NativeEndian.PutUint16(b, family)
	binary.BigEndian.PutUint16(b[2:], port)
	copy(b[where:], ip)
	return b
}

var (
	loop6 = append(make([]byte, 15), 1)
	any6  = make([]byte, 16)
)

// TestAliases connects to interfaces by other addresses than their own.
func TestAliases(t *testing.T) {
	const port = 7777
	own4, own6 := at(port, 10, 9, 8, 7), at(port, append([]byte{0xfd}, loop6[1:]...)...)
	for _, c := range []struct {
		name  string
		own   []byte
		all   Families
		alias string // of its file
		yes   [][]byte
		no    [][]byte
	}{
		{"none", own4, 0, "", [][]byte{own4}, [][]byte{at(port, 127, 0, 0, 1), at(port, 0, 0, 0, 0),
			at(port, any6...)}},
		{"IPv4", own4, IPv4, "0.0.0.0:7777", [][]byte{own4, at(port, 127, 0, 0, 1), at(port, 127, 3, 2, 1),
			at(port, 0, 0, 0, 0)},
			[][]byte{at(port+1, 127, 0, 0, 1), at(port, loop6...), at(port, any6...)}},
		{"IPv6", own6, IPv6, "[::]:7777", [][]byte{own6, at(port, loop6...), at(port, any6...)},
			[][]byte{own4, at(port, 0, 0, 0, 0)}},
		{"both", own6, IPv4 | IPv6, "[::]:7777", [][]byte{own6, own4, at(port, 127, 0, 0, 1), at(port, loop6...)},
			[][]byte{at(port+1, 127, 0, 0, 1), at(port+1, loop6...)}},
		{"number", AppendNumber(own4, 3), 0, "", [][]byte{AppendNumber(own4, 3)},
			[][]byte{own4, AppendNumber(own4, 1), AppendNumber(at(port+1, 10, 9, 8, 7), 3)}},
		{"number, both", AppendNumber(own6, 3), IPv4 | IPv6, "[::]:7777.3",
			[][]byte{AppendNumber(own6, 3), AppendNumber(own4, 3), AppendNumber(at(port, loop6...), 3)},
			[][]byte{own6, own4, AppendNumber(own4, 2), AppendNumber(at(port+1, loop6...), 3)}},
		{"itself", at(port, 0, 0, 0, 0), IPv4, "", [][]byte{own4, at(port, 0, 0, 0, 0)},
			[][]byte{at(port+1, 0, 0, 0, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := shmDir(t)
			peer, err := Open(c.own, Config{Dir: dir, Any: c.all})
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			want := 1
			if c.alias != "" {
				want = 2
				if _, err := os.Lstat(filepath.Join(dir,
					filepath.Base(peer.seg.path[:len(peer.seg.path)-len(peer.seg.id.name.String())])+c.alias)); err !=
					nil {
					t.Error(err)
				}
			}
			if n := segments(t, dir); n != want {
				t.Errorf("%d files, want %d", n, want)
			}
			i := open(t, Config{Dir: dir})
			var first hw.Endpoint
			for _, a := range c.yes {
				ep, err := i.Connect(a)
				if err != nil {
					t.Fatalf("connect to %x: %v", a, err)
				}
				if first == nil {
					first = ep
				}
				if ep != first || !bytes.Equal(ep.Address(), c.own) {
					t.Errorf("another endpoint, to %x", ep.Address())
				}
			}
			for _, a := range c.no {
				if _, err := i.Connect(a); !errors.Is(err, hw.ErrUnreachable) {
					t.Errorf("connect to %x: %v", a, err)
				}
			}
			if n := attached(peer); n != 1 {
				t.Errorf("%d attach entries", n)
			}
			checkReaches(t, peer, i, c.own, c.yes, c.no)
			peer.Close()
			if n := segments(t, dir); n != 1 {
				t.Errorf("%d files after close, want 1", n)
			}
		})
	}
}

// checkReaches has peer send to i, which then says where it answers.
func checkReaches(t *testing.T, peer, i *Iface, own []byte, yes, no [][]byte) {
	t.Helper()
	if i.SourceReaches(0, own) {
		t.Error("reaches a source that has sent nothing")
	}
	back, err := peer.Connect(i.Address())
	if err != nil {
		t.Fatal(err)
	}
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	if err := back.AMShort(1, 0, nil, nil); err != nil || i.Progress(1) != 1 {
		t.Fatalf("no message: %v", err)
	}
	if !bytes.Equal(i.SourceAddress(0), own) {
		t.Errorf("it sends as %x", i.SourceAddress(0))
	}
	for _, a := range slices.Concat(yes, no) {
		want := slices.ContainsFunc(yes, func(b []byte) bool { return bytes.Equal(a, b) })
		if i.SourceReaches(0, a) != want {
			t.Errorf("%x reaches it: %v, want %v", a, !want, want)
		}
	}
	if i.SourceReaches(0, []byte{1}) || i.SourceReaches(99, own) {
		t.Error("reaches nonsense")
	}
}

// TestAliasInUse opens interfaces whose wildcard names meet.
func TestAliasInUse(t *testing.T) {
	dir := shmDir(t)
	a, err := Open(at(9, 10, 0, 0, 1), Config{Dir: dir, Any: IPv4})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := Open(at(9, 10, 0, 0, 2), Config{Dir: dir, Any: IPv4}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("second with the same wildcard: %v", err)
	}
	if n := segments(t, dir); n != 2 {
		t.Errorf("%d files", n)
	}
}

// TestStaleAlias finds both names of a dead process's file removed, by the
// next that wants one of them and by the sweep.
func TestStaleAlias(t *testing.T) {
	for _, by := range []string{"owner", "connect", "sweep", "half"} {
		t.Run(by, func(t *testing.T) {
			dir := shmDir(t)
			i := open(t, Config{Dir: dir})
			dead, err := Open(at(9, 10, 0, 0, 1), Config{Dir: dir, Any: IPv4})
			if err != nil {
				t.Fatal(err)
			}
			paths := dead.seg.id.paths(dir)
			dead.seg.header().PID = 1<<22 + 1 // no such process
			defer dead.lock.Release()         // which is this one's
			switch by {
			case "owner":
				again, err := Open(at(9, 10, 0, 0, 2), Config{Dir: dir, Any: IPv4})
				if err != nil {
					t.Fatal(err)
				}
				again.Close()
			case "connect":
				if _, err := i.Connect(at(9, 127, 0, 0, 1)); !errors.Is(err, hw.ErrUnreachable) {
					t.Error(err)
				}
			case "half": // whatever removed it was killed between
				os.Remove(paths[0])
				fallthrough
			case "sweep":
				sweeps.Lock()
				delete(sweeps.next, dir)
				sweeps.Unlock()
				open(t, Config{Dir: dir})
			}
			for _, path := range paths {
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

// TestAliasDies finds the peer gone under all its names, and a new one there.
func TestAliasDies(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir})
	peer, err := Open(at(9, 10, 0, 0, 1), Config{Dir: dir, Any: IPv4})
	if err != nil {
		t.Fatal(err)
	}
	alias := at(9, 127, 0, 0, 1)
	old, err := i.Connect(alias)
	if err != nil {
		t.Fatal(err)
	}
	peer.Close()
	i.CheckPeers()
	if len(i.peers) != 0 {
		t.Errorf("%d peers", len(i.peers))
	}
	exact, err := Open(alias, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	ep, err := i.Connect(alias)
	if err != nil || ep == old || !bytes.Equal(ep.Address(), alias) {
		t.Errorf("%v, %v", ep, err)
	}
}

// TestAliasBell rings the bell of a peer that was found by its alias.
func TestAliasBell(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir})
	peer, err := Open(at(9, 10, 0, 0, 1), Config{Dir: dir, Any: IPv4})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if err := peer.EnableWait(); err != nil {
		t.Fatal(err)
	}
	ep, err := i.Connect(at(9, 127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	peer.Arm()
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if n, err := unix.Read(peer.DoorbellFD(), b[:]); n != 1 {
		t.Errorf("the bell does not ring: %v", err)
	}
}
