package stats

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/proc"
)

var (
	v4 = []byte{2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	v6 = append([]byte{10, 0, 0x1f, 0x91, 0, 0, 0, 0}, append(make([]byte, 15), 1, 0, 0, 0, 0)...)
)

func open(t *testing.T, dir string, shown bool, addr []byte) *Endpoint {
	t.Helper()
	e, why, err := OpenEndpoint(dir, "1.2.3", shown, addr)
	if err != nil || shown && why != nil {
		t.Fatal(err, why)
	}
	return e
}

func readOwn(t *testing.T, dir string) *Snapshot {
	t.Helper()
	list, err := List(dir, uint32(os.Geteuid()), false)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	s, err := Read(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTable holds the table to its rules: every word has one counter, and may have another that is its part of the
// first ("tx_sync_direct" of "tx_sync"), every name is a metric's, every area is large enough.
func TestTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*[a-z0-9]$`)
	seen, taken := map[string]bool{}, map[Place]string{}
	for _, c := range Table() {
		if !name.MatchString(c.Name) || seen[c.Name] || c.Unit == "" || !strings.HasSuffix(c.Help, ".") ||
			len(c.At) == 0 {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
		for _, p := range c.At {
			if p.Word < 0 || p.Word >= p.Area.words() {
				t.Errorf("%s: word %d of area %d with %d", c.Name, p.Word, p.Area, p.Area.words())
			}
			if other := taken[p]; other != "" && c.Name != other+"_direct" {
				t.Errorf("%s and %s share %v", c.Name, other, p)
			}
			taken[p] = c.Name
			if first := (&Counter{At: []Place{p}}).Level(); first != c.Level() {
				t.Errorf("%s: words of several levels", c.Name)
			}
		}
	}
	for _, area := range []struct {
		area Area
		n    int
	}{{Rx, RxServedReads}, {Shared, SharedReadBytes}, {Stripe, StripeAtomic}, {Peer, PeerLost}, {Process, ProcSleeps}} {
		for w := range area.n + 1 {
			if taken[Place{area.area, w}] == "" {
				t.Errorf("word %d of area %d belongs to no counter", w, area.area)
			}
		}
	}
	if c := Find("tx_inline"); c.Metric() != "weft_tx_inline_total" || Find("posted").Metric() != "weft_posted" ||
		Find("none") != nil {
		t.Error("names of metrics")
	}
}

func TestLayout(t *testing.T) {
	if s := unsafe.Sizeof(header{}); s > processAt {
		t.Errorf("header of %d bytes", s)
	}
	if unsafe.Sizeof(blockHead{}) != rxAt || unsafe.Sizeof(peerHead{}) != peerWordsAt {
		t.Errorf("heads of %d and %d bytes", unsafe.Sizeof(blockHead{}), unsafe.Sizeof(peerHead{}))
	}
	if blockBytes%4096 != 0 || rxAt+8*(RxMatchAtomicBytes+1) > sharedAt {
		t.Errorf("block of %d bytes", blockBytes)
	}
}

// TestWordName: an endpoint whose name is a word is shown as a number.
func TestWordName(t *testing.T) {
	dir := t.TempDir()
	defer open(t, dir, true, []byte{0x5b, 0x8a, 0x46, 2, 0, 0, 0, 0}).Close()
	if s := readOwn(t, dir); s.Endpoints[0].Name != "0x2468a5b" {
		t.Error(s.Endpoints[0].Name)
	}
}

func TestCount(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, true, v4)
	f := open(t, dir, true, v6)
	defer f.Close()
	e.Rx(RxEager, 3)
	e.RxSet(RxKeptBytes, 77)
	e.RxPeak(RxKept, RxKeptPeak, 9)
	e.RxPeak(RxKept, RxKeptPeak, 4)
	e.Shared(SharedNoPost, 2)
	for _, n := range []int{0, 5, Lines - 1, 900} {
		l := e.Stripe(n)
		l.Add(StripeEager, 1)
		l.Add(StripeNoCQ, 2)
	}
	threads := unsafe.Slice((*uint64)(unsafe.Pointer(e.word(threadsAt, 0))), Lines*LineWords)
	threads[3*LineWords+ThreadInline] = 10
	threads[(Lines-1)*LineWords+ThreadInline] = 5
	threads[ThreadNoCQ] = 1
	p := e.Peer(v6)
	numbered := e.Peer(append(append([]byte(nil), v4...), 7, 0, 0, 0))
	numbered.Up(true)
	p.Up(true)
	p.Set(PeerRTT, 1234)
	p.Up(false)
	p.Up(false)
	s := readOwn(t, dir)
	if s.Weft != "1.2.3" || s.PID != uint32(os.Getpid()) || len(s.Endpoints) != 2 || time.Since(s.Created) > time.Hour {
		t.Fatalf("%+v", s)
	}
	got := s.Endpoints[0]
	if got.Name != "127.0.0.1:8080" || s.Endpoints[1].Name != "[::1]:8081" {
		t.Error(got.Name, s.Endpoints[1].Name)
	}
	for name, want := range map[string]uint64{"endpoints": 2, "rx_eager": 3, "unexpected_held_bytes": 77,
		"unexpected":      4,
		"unexpected_peak": 9, "eagain_recv": 2, "tx_eager": 4, "eagain_cq": 9, "tx_inline": 15, "tx_sync": 0} {
		if v := s.Value(name); v != want {
			t.Errorf("%s is %d, want %d", name, v, want)
		}
	}
	if len(got.Peers) != 2 || got.Peers[1].Name != "127.0.0.1:8080.7" || !got.Peers[1].Up ||
		got.Peers[0].Name != "[::1]:8081" || got.Peers[0].Up {
		t.Fatalf("%+v", got.Peers)
	}
	for i, c := range Table() {
		if c.Name == "peer_rtt" && got.Peers[0].Values[i] != 1234 || c.Name == "peer_lost" &&
			got.Peers[0].Values[i] != 1 {
			t.Errorf("%s is %d", c.Name, got.Peers[0].Values[i])
		}
	}
	h, err := proc.This()
	if err != nil || !s.Alive(&h) || RemoveStale(s.Path, &h) {
		t.Error("the page of a living process", err)
	}
	e.Close()
	if s := readOwn(t, dir); len(s.Endpoints) != 1 || s.Value("endpoints") != 1 || s.Value("endpoints_opened") != 2 {
		t.Errorf("after close: %+v", s)
	}
}

// TestEnd: the file goes with the last endpoint, late additions go nowhere, and
// the next endpoint makes another file.
func TestEnd(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, true, v4)
	e.Close()
	if list, err := List(dir, uint32(os.Geteuid()), true); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	e.Rx(RxEager, 5) // late
	e = open(t, dir, true, v4)
	defer e.Close()
	if s := readOwn(t, dir); s.Value("rx_eager") != 0 || s.Value("endpoints_opened") != 1 {
		t.Errorf("%+v", s)
	}
}

// TestHidden: endpoints beyond the page and those that do not want to be shown
// count in memory of their own.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	none := open(t, dir, false, v4)
	if none.Shown() {
		t.Error("shown")
	}
	if list, _ := List(dir, 0, true); len(list) != 0 {
		t.Errorf("%v", list)
	}
	var all []*Endpoint
	for range MaxEndpoints {
		all = append(all, open(t, dir, true, v4))
	}
	extra, why, err := OpenEndpoint(dir, "", true, v4)
	if err != nil || why == nil || extra.Shown() {
		t.Fatal(why, err)
	}
	extra.Rx(RxEager, 1)
	for i := range MaxPeers + 1 {
		if p := extra.Peer(v4); (p == nil) != (i >= MaxPeers) {
			t.Fatalf("peer %d: %v", i, p)
		} else {
			p.Up(true)
			p.Set(PeerRTT, 1)
		}
	}
	if s := readOwn(t, dir); len(s.Endpoints) != MaxEndpoints || s.Value("endpoints_hidden") != 2 {
		t.Errorf("%d endpoints, %d hidden", len(s.Endpoints), s.Value("endpoints_hidden"))
	}
	for _, e := range append(all, extra, none) {
		e.Close()
	}
}

// TestFullDisk: without room for the page endpoints open all the same.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	e, why, err := OpenEndpoint(dir, "", true, v4)
	if err != nil || !errors.Is(why, unix.ENOSPC) || e.Shown() {
		t.Fatal(e.Shown(), why, err)
	}
	e.Rx(RxEager, 1)
	e.Close()
	e, why, err = OpenEndpoint(filepath.Join(dir, "none"), "", true, v4)
	if err != nil || !errors.Is(why, unix.ENOENT) {
		t.Fatal(why, err)
	}
	e.Close()
}

// TestStale: a page whose process has ended is removed by the next.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, true, v4)
	path := readOwn(t, dir).Path
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	binary.LittleEndian.PutUint32(text[offPID:], 1<<22+5)
	h, _ := proc.This()
	stale := filepath.Join(dir, fileName(h.UID, h.PIDNS, 1<<22+5))
	if err := os.WriteFile(stale, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Of another pid namespace: one whose lock nothing holds, and one that has none, of which nothing knows.
	binary.LittleEndian.PutUint64(text[offPIDNS:], 1)
	foreign := filepath.Join(dir, fileName(h.User, 1, 1<<22+5))
	if err := os.WriteFile(foreign, text, 0o600); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(text[offLocked:], 0)
	binary.LittleEndian.PutUint32(text[offPID:], 7)
	unknown := filepath.Join(dir, fileName(h.User, 1, 7))
	if err := os.WriteFile(unknown, text, 0o600); err != nil {
		t.Fatal(err)
	}
	e = open(t, dir, true, v4)
	defer e.Close()
	for _, path := range []string{stale, foreign} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Error("the stale page is there", err)
		}
	}
	if _, err := os.Stat(unknown); err != nil {
		t.Error(err)
	}
	own, err := Read(filepath.Join(dir, fileName(h.User, h.PIDNS, h.Self.PID)))
	if err != nil || own.unlocked {
		t.Errorf("own page: %v, its lock counts as free", err)
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, true, v4)
	defer e.Close()
	path := readOwn(t, dir).Path
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := func(pid uint32) string { return filepath.Join(dir, fileName(uint32(os.Geteuid()), 1, pid)) }
	for i, c := range []struct {
		change func(b []byte) []byte
		want   error
	}{
		{func(b []byte) []byte { return b[:100] }, ErrMalformed},
		{func(b []byte) []byte { b[0]++; return b }, ErrMalformed},
		{func(b []byte) []byte { b[offVersion]++; return b }, ErrVersion},
		{func(b []byte) []byte { b[offTable]++; return b }, ErrVersion},
		{func(b []byte) []byte { b[offBytes]++; return b }, ErrMalformed},
		{func(b []byte) []byte { return b }, ErrMalformed}, // another process's
	} {
		p := name(uint32(100 + i))
		if err := os.WriteFile(p, c.change(append([]byte(nil), good...)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Read(p)
		if !errors.Is(err, c.want) || (s != nil) != errors.Is(c.want, ErrVersion) {
			t.Errorf("case %d: %v", i, err)
		}
	}
	os.Chmod(name(100), 0o622)
	if _, err := Read(name(100)); !errors.Is(err, ErrPermission) {
		t.Error(err)
	}
	os.Symlink(path, name(200))
	if _, err := Read(name(200)); !errors.Is(err, unix.ELOOP) {
		t.Error(err)
	}
	unix.Mkfifo(name(201), 0o600)
	if _, err := Read(name(201)); !errors.Is(err, ErrPermission) {
		t.Error(err)
	}
	for _, bad := range []string{"weft-stats.1.2", "weft-stats.1.2.3.4", "weft-stats.01.2.3", "other",
		"weft-stats.-1.2.3"} {
		if _, err := Read(filepath.Join(dir, bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// FuzzParse reads arbitrary pages.
func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	e, why, err := OpenEndpoint(dir, "1", true, v4)
	if err != nil || why != nil {
		f.Fatal(err, why)
	}
	e.Peer(v6).Up(true)
	list, _ := List(dir, 0, true)
	page, err := os.ReadFile(list[0])
	e.Close()
	if err != nil {
		f.Fatal(err)
	}
	page = page[:headerBytes+2*blockBytes]
	f.Add(uint16(0), byte(0), page[:headerBytes])
	f.Add(uint16(headerBytes), byte(1), page)
	f.Fuzz(func(t *testing.T, at uint16, v byte, b []byte) {
		image := append([]byte(nil), page...)
		copy(image[:min(len(b), 256)], b)
		copy(image[headerBytes:], b[min(len(b), 256):])
		image[int(at)%len(image)] = v
		for _, i := range [][]byte{b, image} {
			s, err := parse(i)
			if err == nil && (s == nil || len(s.Endpoints) > MaxEndpoints) {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func TestFormatValue(t *testing.T) {
	for _, c := range []struct {
		unit string
		v    float64
		want string
	}{
		{unitBytes, 0, "0B"}, {unitBytes, 1023, "1023B"}, {unitBytes, 1536, "1.5KiB"}, {unitBytes, 5e12, "4.5TiB"},
		{unitMessages, 999, "999"}, {unitMessages, 12345678, "12.3M"}, {unitMessages, 0.5, "0.5"},
		{"ns", 0, "-"}, {"ns", 1500, "1.5us"}, {unitMessages, 999999, "1.0M"},
	} {
		if got := FormatValue(c.unit, c.v); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// TestOwnValues reads the process's counters without its page, of endpoints that
// are shown and not.
func TestOwnValues(t *testing.T) {
	before := make([]uint64, len(table))
	ProcessValues(before)
	dir := t.TempDir()
	a, b := open(t, dir, true, v4), open(t, dir, false, v6)
	a.Rx(RxEager, 3)
	b.Rx(RxEager, 4)
	a.RxPeak(RxPosted, RxPostedPeak, 9)
	b.RxPeak(RxPosted, RxPostedPeak, 5)
	line := b.Stripe(0)
	line.Add(StripeEager, 7)
	CountProcess(ProcSleeps)
	CountProcess(ProcSleeps)
	value := func(list []uint64, name string) uint64 {
		for i := range table {
			if table[i].Name == name {
				return list[i]
			}
		}
		t.Fatal(name)
		return 0
	}
	list := make([]uint64, len(table))
	b.Values(list)
	if value(list, "rx_eager") != 4 || value(list, "tx_eager") != 7 || value(list, "endpoints") != 0 {
		t.Error(list)
	}
	ProcessValues(list)
	for name, want := range map[string]uint64{
		"rx_eager": 7, "tx_eager": 7, "posted": 14, "posted_peak": 9,
		"endpoints": 2, "endpoints_hidden": 1, "endpoints_opened": value(before, "endpoints_opened") + 2,
		"thread_sleeps": value(before, "thread_sleeps") + 2,
	} {
		if got := value(list, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	short := []uint64{1}
	ProcessValues(short) // no more than fits
	a.Close()
	b.Close()
	ProcessValues(list)
	if value(list, "endpoints") != 0 || value(list, "rx_eager") != 0 {
		t.Error(list)
	}
}
