package provider

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
)

// openTestEQ opens an event queue that is closed at the end of the test, after
// what it is bound to.
func openTestEQ(t testing.TB, f *Fabric) *eq.Queue {
	t.Helper()
	q, err := f.OpenEQ(&fi.EQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// wantEvent reads an event and compares it.
func wantEvent(t testing.TB, q *eq.Queue, number fi.EQEvent, want ...uint64) {
	t.Helper()
	var buf [24]byte
	got, n, err := q.Read(buf[:], 0)
	if err != nil || got != uint32(number) || n != 8*len(want) {
		t.Fatalf("event %d of %d bytes: %v", got, n, err)
	}
	for i, w := range want {
		if v := binary.LittleEndian.Uint64(buf[8*i:]); v != w {
			t.Errorf("event %d: word %d is %d, want %d", number, i, v, w)
		}
	}
}

func TestOpenEQ(t *testing.T) {
	f := &Fabric{}
	w, err := f.OpenWait(&fi.WaitAttr{WaitObj: fi.WaitFD})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		attr *fi.EQAttr
		want fi.Errno
	}{
		{nil, fi.EINVAL},
		{&fi.EQAttr{}, fi.Success},
		{&fi.EQAttr{Size: 10, Flags: fi.Write, WaitObj: fi.WaitFD}, fi.Success},
		{&fi.EQAttr{SignalingVector: -1}, fi.Success},
		{&fi.EQAttr{Flags: fi.Affinity, SignalingVector: -1}, fi.EINVAL},
		{&fi.EQAttr{Flags: fi.Read}, fi.EBADFLAGS},
		{&fi.EQAttr{WaitObj: 99}, fi.EINVAL},
		{&fi.EQAttr{WaitObj: fi.WaitSet}, fi.EINVAL},
		{&fi.EQAttr{WaitObj: fi.WaitSet, WaitSet: w}, fi.Success},
		{&fi.EQAttr{WaitSet: w}, fi.Success},
	} {
		q, err := f.OpenEQ(c.attr)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%+v: %v, want %v", c.attr, err, c.want)
		}
		if err == nil {
			wantErrno(t, q.Close(), fi.Success, "close")
		}
	}
	wantErrno(t, w.Close(), fi.Success, "close wait set")
}

// Insertions into an address vector with FI_EVENT report one error for each
// address that fails, then the number of those that did not.
func TestAVEvents(t *testing.T) {
	d := openTestDomain(t, testInfo())
	a, err := d.OpenAV(&fi.AVAttr{Flags: fi.Event})
	if err != nil {
		t.Fatal(err)
	}
	raw := rawNames(addr("127.0.0.1:1"), addr("192.0.2.1:1"), addr("127.0.0.1:2"), addr("127.0.0.1:0"))
	_, err = a.Insert(raw, 4, &Insertion{})
	wantErrno(t, err, fi.ENOEQ, "insert without an event queue")
	q := openTestEQ(t, d.fabric)
	wantErrno(t, a.BindEQ(q, fi.More), fi.EBADFLAGS, "bind with flags")
	wantErrno(t, a.BindEQ(nil, 0), fi.EINVAL, "bind nil")
	wantErrno(t, a.BindEQ(q, 0), fi.Success, "bind")
	wantErrno(t, a.BindEQ(q, 0), fi.EINVAL, "second bind")
	wantErrno(t, q.Close(), fi.EBUSY, "close of a bound event queue")
	a.SetFID(77)
	in := Insertion{Context: 5, Addrs: make([]fi.Addr, 4)}
	n, err := a.Insert(raw, 4, &in)
	if n != 0 || err != nil || in.Addrs[2] != 1 || in.Addrs[3] != fi.AddrNotAvail {
		t.Fatalf("%d %v, addresses %v", n, err, in.Addrs)
	}
	for _, want := range []eq.ErrEntry{{Data: 1, Err: fi.EHOSTUNREACH}, {Data: 3, Err: fi.EINVAL}} {
		e, err := q.ReadErr(0)
		if err != nil || e.FID != 77 || e.Context != 5 || e.Data != want.Data || e.Err != want.Err {
			t.Errorf("error %+v: %v", e, err)
		}
	}
	wantEvent(t, q, fi.AVComplete, 77, 5, 2)
	if n, err := a.Insert(nil, 0, &Insertion{Context: 6}); n != 0 || err != nil {
		t.Errorf("insert nothing: %d %v", n, err)
	}
	wantEvent(t, q, fi.AVComplete, 77, 6, 0)
	_, err = a.Insert(raw, 4, &Insertion{Flags: fi.SyncErr, Errs: make([]int32, 4)})
	wantErrno(t, err, fi.EBADFLAGS, "FI_SYNC_ERR with FI_EVENT")
	wantErrno(t, a.Close(), fi.Success, "close")
	wantErrno(t, q.Close(), fi.Success, "close event queue")
}

func TestDomainEvents(t *testing.T) {
	f := &Fabric{attr: fi.FabricAttr{Name: "127.0.0.0/8"}, cfg: testConfig(t)}
	d, err := f.OpenDomain(testInfo())
	if err != nil {
		t.Fatal(err)
	}
	q := openTestEQ(t, f)
	attr := regionAttr(fi.Send, 0)
	attr.Context = 9
	m, err := d.RegMR(attr, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.Complete(1)
	if _, _, err := q.Read(nil, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("event without binding: %v", err)
	}
	wantErrno(t, d.BindEQ(nil, 0), fi.EINVAL, "bind nil")
	wantErrno(t, d.BindEQ(q, fi.More), fi.EBADFLAGS, "bind with flags")
	wantErrno(t, d.BindEQ(q, 0), fi.Success, "bind")
	wantErrno(t, d.BindEQ(q, 0), fi.EINVAL, "second bind")
	m.Complete(1)
	if _, _, err := q.Read(nil, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("event without FI_REG_MR: %v", err)
	}
	wantErrno(t, d.BindEQ(q, fi.RegMR), fi.Success, "bind for registrations")
	m.Complete(88)
	wantEvent(t, q, fi.MRComplete, 88, 9, 0)
	wantErrno(t, m.Close(), fi.Success, "close")
	wantErrno(t, q.Close(), fi.EBUSY, "close of a bound event queue")
	wantErrno(t, d.Close(), fi.Success, "close domain")
	wantErrno(t, q.Close(), fi.Success, "close event queue")
}
