package provider

import (
	"bytes"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/provider/names"
)

func addr(s string) names.Name {
	a := netip.MustParseAddrPort(s)
	return names.New(a.Addr(), a.Port())
}

func TestOpenAVAttributes(t *testing.T) {
	d := openTestDomain(t, testInfo())
	for _, c := range []struct {
		attr fi.AVAttr
		want fi.Errno
	}{
		{fi.AVAttr{}, fi.Success},
		{fi.AVAttr{Type: fi.AVMap, Count: 1 << 60, Flags: fi.Symmetric}, fi.Success},
		{fi.AVAttr{Type: fi.AVTable, Flags: fi.Event}, fi.Success},
		{fi.AVAttr{Type: 3}, fi.EINVAL},
		{fi.AVAttr{Type: -1}, fi.EINVAL},
		{fi.AVAttr{RxCtxBits: 8}, fi.Success},
		{fi.AVAttr{RxCtxBits: 9}, fi.EINVAL},
		{fi.AVAttr{RxCtxBits: -1}, fi.EINVAL},
		{fi.AVAttr{Flags: fi.Read}, fi.EINVAL},
		{fi.AVAttr{Flags: fi.AVUserID}, fi.EBADFLAGS},
		{fi.AVAttr{Flags: fi.Universe}, fi.EBADFLAGS},
	} {
		attr := c.attr
		a, err := d.OpenAV(&attr)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%+v: %v, want %v", c.attr, err, c.want)
		}
		if err != nil {
			continue
		}
		if attr.Type == fi.AVUnspec || c.attr.Type != fi.AVUnspec && attr.Type != c.attr.Type {
			t.Errorf("%+v: type %d", c.attr, attr.Type)
		}
		wantErrno(t, d.Close(), fi.EBUSY, "close of a domain with an address vector")
		wantErrno(t, a.Close(), fi.Success, "close")
		wantErrno(t, a.Close(), fi.EBADF, "second close")
	}
}

// TestAVInsertStarved has an address that cannot be read refused with the reason, and taken once it can.
func TestAVInsertStarved(t *testing.T) {
	d := openTestDomain(t, testInfo())
	a := openTestAV(t, d, fi.AVAttr{})
	own := addr("127.0.0.1:1000").AppendSockaddr(nil)
	d.local.Use(func() ([]names.Interface, error) { return nil, os.NewSyscallError("netlinkrib", syscall.EMFILE) })
	addrs, errs := make([]fi.Addr, 1), make([]int32, 1)
	if n, err := a.Insert(own, 1, &Insertion{Addrs: addrs, Errs: errs, Flags: fi.SyncErr}); n != 0 || err != nil ||
		addrs[0] != fi.AddrNotAvail || errs[0] != int32(fi.EMFILE) {
		t.Errorf("without descriptors: %d, %v, address %#x, error %d", n, err, addrs[0], errs[0])
	}
	d.local.Use(testInterfaces)
	if n, err := a.Insert(own, 1, &Insertion{Addrs: addrs}); n != 1 || err != nil {
		t.Errorf("with descriptors: %d, %v", n, err)
	}
}

func TestAVInsertLookupRemove(t *testing.T) {
	for _, typ := range []fi.AVType{fi.AVMap, fi.AVTable} {
		a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{Type: typ})
		list := []names.Name{addr("127.0.0.1:1000"), addr("10.1.2.3:1001"), addr("127.9.9.9:1002")}
		addrs := insertAll(t, a, list...)
		for i, n := range list {
			if addrs[i] != fi.Addr(i) {
				t.Errorf("address %d is %d", i, addrs[i])
			}
			if got, ok := a.Name(addrs[i]); !ok || got != n {
				t.Errorf("name of %d is %v %v, want %v", i, got, ok, n)
			}
			if got := a.Find(n); got != addrs[i] {
				t.Errorf("%v found at %d, want %d", n, got, addrs[i])
			}
			b := make([]byte, 40)
			needed, err := a.Lookup(addrs[i], b)
			if err != nil || !bytes.Equal(b[:needed], rawNames(n)) {
				t.Errorf("lookup of %d: %x %v", i, b[:needed], err)
			}
		}
		generation := a.Generation()
		wantErrno(t, a.Remove(addrs[1:2], 0), fi.Success, "remove")
		if a.Generation() == generation {
			t.Error("generation does not change with a removal")
		}
		if got, ok := a.Name(addrs[1]); ok {
			t.Errorf("removed address has name %v", got)
		}
		if got := a.Find(list[1]); got != fi.AddrNotAvail {
			t.Errorf("removed name found at %d", got)
		}
		_, err := a.Lookup(addrs[1], nil)
		wantErrno(t, err, fi.EINVAL, "lookup of a removed address")
		if got := insertAll(t, a, list[1])[0]; got != addrs[1] {
			t.Errorf("inserted at %d, want the free %d", got, addrs[1])
		}
	}
}

func TestAVRemoveErrors(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	addrs := insertAll(t, a, addr("127.0.0.1:1"), addr("127.0.0.1:2"), addr("127.0.0.1:3"))
	for _, bad := range []fi.Addr{5, 6, 1000, 1 << 40, fi.AddrNotAvail} {
		there := insertAll(t, a, addr("127.0.0.1:4"), addr("127.0.0.1:5"))
		list := []fi.Addr{there[0], bad, there[1]}
		wantErrno(t, a.Remove(list, 0), fi.EINVAL, "remove of an address that is not there")
		for _, at := range there {
			if _, ok := a.Name(at); ok {
				t.Errorf("address %d, listed with %#x, is not removed", at, bad)
			}
		}
	}
	wantErrno(t, a.Remove(addrs, fi.More), fi.EBADFLAGS, "flags")
	if _, ok := a.Name(addrs[0]); !ok {
		t.Fatal("a refused removal removed something")
	}
	wantErrno(t, a.Remove(addrs[:1], 0), fi.Success, "remove")
	wantErrno(t, a.Remove(addrs[:1], 0), fi.EINVAL, "second removal")
	wantErrno(t, a.Remove(addrs, 0), fi.EINVAL, "list with a removed address")
	wantErrno(t, a.Remove([]fi.Addr{addrs[1], addrs[1]}, 0), fi.EINVAL, "address listed twice")
	wantErrno(t, a.Remove(nil, 0), fi.Success, "empty list")
}

func TestAVLookupTruncates(t *testing.T) {
	d := openTestDomain(t, testInfo())
	a := openTestAV(t, d, fi.AVAttr{})
	at := insertAll(t, a, addr("127.0.0.1:258"))[0]
	b := []byte{9, 9, 9, 9, 9}
	needed, err := a.Lookup(at, b[:4])
	if err != nil || needed != names.SockaddrInLen || !bytes.Equal(b, []byte{2, 0, 1, 2, 9}) {
		t.Fatalf("%d %x %v", needed, b, err)
	}
	if needed, err = a.Lookup(at, nil); err != nil || needed != names.SockaddrInLen {
		t.Fatalf("%d %v", needed, err)
	}
}

// What is wrong with one address concerns only that one.
func TestAVInsertBadAddresses(t *testing.T) {
	lines := logtest.Capture(t, log.Info)
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	list := []names.Name{
		addr("127.0.0.1:1"), // good
		addr("192.0.2.1:1"), // elsewhere
		addr("10.1.2.3:2"),  // good
		addr("10.1.2.4:2"),  // elsewhere in the same network
		addr("127.0.0.1:0"), // no port
		addr("0.0.0.0:5"),   // wildcard
		addr("127.0.0.1:65535"),
	}
	raw := append(rawNames(list...), make([]byte, 16)...) // and no address at all
	in := Insertion{Flags: fi.SyncErr | fi.More, Addrs: make([]fi.Addr, 8), Errs: make([]int32, 8)}
	for i := range in.Errs {
		in.Errs[i] = -1
	}
	n, err := a.Insert(raw, 8, &in)
	if err != nil || n != 3 {
		t.Fatalf("inserted %d: %v", n, err)
	}
	no := fi.AddrNotAvail
	if want := []fi.Addr{0, no, 1, no, no, no, 2, no}; !slices.Equal(in.Addrs, want) {
		t.Errorf("addresses %v, want %v", in.Addrs, want)
	}
	unreach, inval := int32(fi.EHOSTUNREACH), int32(fi.EINVAL)
	if want := []int32{0, unreach, 0, unreach, inval, inval, 0, inval}; !slices.Equal(in.Errs, want) {
		t.Errorf("errors %v, want %v", in.Errs, want)
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "5 of 8") || !strings.Contains(got[0], "192.0.2.1") {
		t.Errorf("log lines %q", got)
	}
	// Without result arrays the count says.
	if n, err := a.Insert(raw, 8, &Insertion{}); err != nil || n != 3 {
		t.Errorf("inserted %d: %v", n, err)
	}
}

func TestAVInsertArguments(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	raw := rawNames(addr("127.0.0.1:1"), addr("127.0.0.1:2"))
	for _, c := range []struct {
		raw   []byte
		count int
		in    Insertion
		want  fi.Errno
	}{
		{nil, 0, Insertion{}, fi.Success},
		{nil, 1, Insertion{}, fi.EINVAL},
		{raw[:1], 1, Insertion{}, fi.EINVAL},
		{raw[:31], 2, Insertion{}, fi.EINVAL},
		{raw, -1, Insertion{}, fi.EINVAL},
		{raw, 2, Insertion{Addrs: make([]fi.Addr, 1)}, fi.EINVAL},
		{raw, 2, Insertion{Flags: fi.SyncErr, Errs: make([]int32, 1)}, fi.EINVAL},
		{raw, 2, Insertion{Flags: fi.SyncErr}, fi.EINVAL},
		{raw, 2, Insertion{Flags: fi.AVUserID}, fi.EINVAL}, // ids are missing,
	} {
		n, err := a.Insert(c.raw, c.count, &c.in)
		if n != 0 || fi.ErrnoOf(err) != c.want {
			t.Errorf("%d bytes, count %d, %+v: %d %v, want %v", len(c.raw), c.count, c.in, n, err, c.want)
		}
	}
	if _, err := a.InsertNames([]string{"fi_sockaddr_in://127.0.0.1:1"}, &Insertion{}); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("strings in an address vector of socket addresses: %v", err)
	}
	if _, ok := a.Name(0); ok {
		t.Error("something was inserted")
	}
}

func TestAVFormats(t *testing.T) {
	v4, v6 := addr("127.0.0.1:7"), addr("[2001:db8::1]:8")
	for _, c := range []struct {
		format fi.AddrFormat
		first  names.Name
		size   int
		ok     bool
	}{
		{fi.Sockaddr, v4, 16, true},
		{fi.Sockaddr, v6, 28, true},
		{fi.SockaddrIP, v6, 28, true},
		{fi.SockaddrIn, v4, 16, true},
		{fi.SockaddrIn, v6, 16, false},
		{fi.SockaddrIn6, v6, 28, true},
		{fi.SockaddrIn6, v4, 28, false},
		{fi.FormatUnspec, v4, 16, true},
	} {
		i := testInfo()
		i.AddrFormat = c.format
		a := openTestAV(t, openTestDomain(t, i), fi.AVAttr{})
		if got := a.AddrSize(c.first.Family); got != c.size {
			t.Errorf("format %d, family %d: %d bytes, want %d", c.format, c.first.Family, got, c.size)
		}
		raw := append(rawNames(c.first), make([]byte, 28)...)
		n, err := a.Insert(raw, 1, &Insertion{})
		if err != nil || n == 1 != c.ok {
			t.Errorf("format %d, family %d: inserted %d: %v", c.format, c.first.Family, n, err)
		}
	}
	if a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{}); a.AddrSize(99) != 16 {
		t.Error("addresses of an unknown family are not the shortest")
	}
}

func TestAVStrings(t *testing.T) {
	i := testInfo()
	i.AddrFormat = fi.AddrStr
	a := openTestAV(t, openTestDomain(t, i), fi.AVAttr{})
	list := []string{"fi_sockaddr_in://127.0.0.1:7", "nonsense", "", "fi_sockaddr_in6://[2001:db8::1]:8"}
	in := Insertion{Flags: fi.SyncErr, Addrs: make([]fi.Addr, 4), Errs: make([]int32, 4)}
	n, err := a.InsertNames(list, &in)
	if err != nil || n != 2 || !slices.Equal(in.Addrs, []fi.Addr{0, fi.AddrNotAvail, fi.AddrNotAvail, 1}) {
		t.Fatalf("inserted %d at %v: %v", n, in.Addrs, err)
	}
	b := make([]byte, 100)
	needed, err := a.Lookup(1, b)
	if err != nil || string(b[:needed]) != list[3]+"\x00" {
		t.Errorf("lookup: %q %v", b[:needed], err)
	}
	if got := a.StrAddr([]byte(list[0] + "\x00rest")); got != list[0] {
		t.Errorf("straddr: %q", got)
	}
	if _, err := a.Insert(rawNames(addr("127.0.0.1:1")), 1, &Insertion{}); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("socket addresses in an address vector of strings: %v", err)
	}
}

func TestAVStrAddr(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	if got := a.StrAddr(rawNames(addr("192.0.2.1:80"))); got != "fi_sockaddr_in://192.0.2.1:80" {
		t.Errorf("%q", got)
	}
	if got := a.StrAddr(nil); !strings.HasPrefix(got, "(") {
		t.Errorf("no address gives %q", got)
	}
}

func TestAVDuplicates(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	n := addr("127.0.0.1:1")
	addrs := insertAll(t, a, n, addr("127.0.0.1:2"), n, n)
	if got := a.Find(n); got != addrs[0] {
		t.Fatalf("found at %d", got)
	}
	for _, step := range []struct {
		remove int
		found  fi.Addr
	}{{0, addrs[2]}, {3, addrs[2]}, {2, fi.AddrNotAvail}} {
		wantErrno(t, a.Remove(addrs[step.remove:step.remove+1], 0), fi.Success, "remove")
		if got := a.Find(n); got != step.found {
			t.Errorf("after removing %d found at %d, want %d", step.remove, got, step.found)
		}
	}
}

func TestAVFull(t *testing.T) {
	cfg := *config.Default()
	cfg.AVSizeMax = 3
	a := openTestAV(t, openTestDomainWith(t, testInfo(), &cfg), fi.AVAttr{Count: 100})
	in := Insertion{Flags: fi.SyncErr, Errs: make([]int32, 4)}
	n, err := a.Insert(rawNames(testName(1), testName(2), testName(3), testName(4)), 4, &in)
	if err != nil || n != 3 || in.Errs[3] != int32(fi.ENOMEM) {
		t.Fatalf("inserted %d, errors %v: %v", n, in.Errs, err)
	}
	if a.Limit() != 3 {
		t.Errorf("limit %d", a.Limit())
	}
	wantErrno(t, a.Remove([]fi.Addr{1}, 0), fi.Success, "remove")
	if got := insertAll(t, a, testName(4))[0]; got != 1 {
		t.Errorf("inserted at %d", got)
	}
}

func TestAVSubscribe(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	addrs := insertAll(t, a, testName(1), testName(2), testName(3))
	var first, second []fi.Addr
	cancel := a.Subscribe(func(r fi.Addr) { first = append(first, r) })
	defer a.Subscribe(func(r fi.Addr) { second = append(second, r) })()
	wantErrno(t, a.Remove(addrs[1:], 0), fi.Success, "remove")
	cancel()
	wantErrno(t, a.Remove(addrs[:1], 0), fi.Success, "remove")
	if !slices.Equal(first, []fi.Addr{1, 2}) || !slices.Equal(second, []fi.Addr{1, 2, 0}) {
		t.Fatalf("notified %v and %v", first, second)
	}
}

func TestAVBusy(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	if err := a.Acquire(); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, a.Close(), fi.EBUSY, "close with an endpoint")
	insertAll(t, a, testName(1))
	a.Release()
}

func TestAVInsertSvc(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	for _, c := range []struct {
		node, service string
		want          names.Name
		errno         fi.Errno
	}{
		{"127.0.0.1", "77", addr("127.0.0.1:77"), fi.Success},
		{"node3", "discard", addr("127.3.0.1:9"), fi.Success},
		{"both", "5", addr("[2001:db8::1]:5"), fi.Success}, // the one that is here
		{"fi_sockaddr_in://127.0.0.1:8", "", addr("127.0.0.1:8"), fi.Success},
		{"fi_sockaddr_in://127.0.0.1:8", "9", names.Name{}, fi.EINVAL},
		{"stranger", "77", names.Name{}, fi.ENODATA},
		{"127.0.0.1", "nothing", names.Name{}, fi.ENODATA},
		{"127.0.0.1", "", names.Name{}, fi.EINVAL},
		{"192.0.2.1", "77", names.Name{}, fi.EHOSTUNREACH},
	} {
		in := Insertion{Flags: fi.SyncErr, Addrs: make([]fi.Addr, 1), Errs: make([]int32, 1)}
		n, err := a.InsertSvc(c.node, c.service, &in)
		if err != nil || n == 1 != (c.errno == fi.Success) || in.Errs[0] != int32(c.errno) {
			t.Errorf("%q %q: %d, %v, errno %d, want %v", c.node, c.service, n, err, in.Errs[0], c.errno)
			continue
		}
		if got, _ := a.Name(in.Addrs[0]); got != c.want {
			t.Errorf("%q %q: %v, want %v", c.node, c.service, got, c.want)
		}
	}
	_, err := a.InsertSvc("", "77", &Insertion{})
	wantErrno(t, err, fi.EINVAL, "no node")

	i := testInfo()
	i.AddrFormat = fi.SockaddrIn
	only4 := openTestAV(t, openTestDomain(t, i), fi.AVAttr{})
	in := Insertion{Flags: fi.SyncErr, Errs: make([]int32, 1)}
	if n, err := only4.InsertSvc("both", "5", &in); n != 0 || err != nil || in.Errs[0] != int32(fi.EHOSTUNREACH) {
		t.Errorf("%d %v %v", n, err, in.Errs)
	}
	if n, err := only4.InsertSvc("2001:db8::1", "5", &in); n != 0 || err != nil || in.Errs[0] != int32(fi.EINVAL) {
		t.Errorf("%d %v %v", n, err, in.Errs)
	}
}

func TestAVInsertSym(t *testing.T) {
	for _, c := range []struct {
		node     string
		nodes    uint64
		service  string
		services uint64
		want     []string // empty: not inserted
	}{
		{"127.1.1.255", 2, "5000", 2, []string{"127.1.1.255:5000", "127.1.1.255:5001", "127.1.2.0:5000",
			"127.1.2.0:5001"}},
		{"node08", 3, "discard", 1, []string{"127.8.0.1:9", "127.9.0.1:9", "127.10.0.1:9"}},
		{"node1", 1, "65535", 2, []string{"127.1.0.1:65535", ""}},
		{"255.255.255.255", 2, "1", 1, []string{"", ""}},
		{"node99", 2, "1", 1, []string{"127.99.0.1:1", ""}},
		{"2001:db8::1", 2, "1", 1, []string{"[2001:db8::1]:1", ""}}, // the second is elsewhere
	} {
		a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
		in := Insertion{Addrs: make([]fi.Addr, len(c.want))}
		n, err := a.InsertSym(c.node, c.nodes, c.service, c.services, &in)
		if err != nil {
			t.Errorf("%q: %v", c.node, err)
			continue
		}
		for i, w := range c.want {
			got, ok := a.Name(in.Addrs[i])
			if ok {
				n--
			}
			if ok != (w != "") || ok && got != addr(w) {
				t.Errorf("%q: address %d is %v %v, want %q", c.node, i, got, ok, w)
			}
		}
		if n != 0 {
			t.Errorf("%q: the count is %d off", c.node, n)
		}
	}
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	for _, c := range []struct {
		node            string
		nodes, services uint64
		want            fi.Errno
	}{
		{"", 1, 1, fi.EINVAL},
		{"127.0.0.1", 0, 1, fi.EINVAL},
		{"127.0.0.1", 1, 0, fi.EINVAL},
		{"127.0.0.1", 1 << 40, 1 << 40, fi.EINVAL},
		{"127.0.0.1", 1 << 30, 1, fi.ENOMEM},
		{"nameless", 2, 1, fi.EINVAL},
		{"node99999999999999999999", 2, 1, fi.EINVAL},
		{"fi_sockaddr_in://127.0.0.1:8", 1, 1, fi.EINVAL},
	} {
		_, err := a.InsertSym(c.node, c.nodes, "1", c.services, &Insertion{})
		wantErrno(t, err, c.want, c.node)
	}
}

// testName is the i-th of many names on this host.
func testName(i int) names.Name {
	a := i / 65535
	return names.New(netip.AddrFrom4([4]byte{127, byte(a >> 8), byte(a), 1}), uint16(i%65535+1))
}
