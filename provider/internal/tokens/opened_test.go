package tokens

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/token"
)

// TestOpen opens a token: what it says, its owner's address, and the users of the endpoint.
func TestOpen(t *testing.T) {
	e, o := newEndpoint()
	packed := made(t, plain())
	r, err := o.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	about := list.About{Addr: 0, Key: 11, Base: 4096, Length: 100, Host: true, Read: true, Write: true}
	if r.About() != about || r.Of() != Endpoint(e) || r.Token().Incarnation != 3 || e.users.Load() != 1 {
		t.Errorf("%+v, %d users", r.About(), e.users.Load())
	}
	if i := r.Info(); i.Addr != 0 || i.Agent != "agent" || i.Key != 11 || i.Base != 4096 || i.Length != 100 ||
		i.Rights != fi.RemoteRead|fi.RemoteWrite || i.Kind != token.Host {
		t.Errorf("%+v", i)
	}
	if err := r.Acquire(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, fi.EBUSY) {
		t.Errorf("closed while it is used: %v", err)
	}
	r.Release()
	if err := r.Close(); err != nil || e.users.Load() != 0 {
		t.Errorf("close: %v, %d users", err, e.users.Load())
	}
	if err := r.Acquire(); !errors.Is(err, fi.EBADF) {
		t.Errorf("used after its end: %v", err)
	}
}

// TestOpenUnderKeys: a token is opened under the first of the endpoint's keys that it was made with, and the owner's
// address is one under that key.
func TestOpenUnderKeys(t *testing.T) {
	e, o := newEndpoint()
	e.keys = []hw.Key{{Number: 1, Secret: []byte("one")}, {Number: 3, Secret: []byte("three")}}
	for _, c := range []struct {
		made  []string
		under uint8 // 0: it is refused
	}{
		{[]string{"one"}, 1}, {[]string{"three"}, 3}, {[]string{"three", "one"}, 1}, {[]string{"two", "three"}, 3},
		{[]string{"two"}, 0}, {nil, 0}, {[]string{"two", "four"}, 0},
	} {
		r, err := o.Open(made(t, plain(), c.made...))
		if c.under == 0 {
			if !errors.Is(err, fi.EINVAL) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if addr, ok := e.known[owner(7).WithKey(c.under)]; !ok || r.About().Addr != addr {
			t.Errorf("%+v: the owner is at %d of %v", c, r.About().Addr, e.known)
		}
	}
}

// TestOpenContext: the token of a receive context leads there.
func TestOpenContext(t *testing.T) {
	_, o := newEndpoint()
	own := plain()
	for _, context := range []uint8{0, 1} {
		own.Owner.Number = context
		r, err := o.Open(made(t, own))
		if err != nil || r.About().Addr != fi.Addr(context)<<63 {
			t.Errorf("context %d: %+v, %v", context, r, err)
		}
	}
	own.Owner.Number = 2
	if _, err := o.Open(made(t, own)); !errors.Is(err, fi.EINVAL) {
		t.Errorf("a context that the addresses have no bits for: %v", err)
	}
}

// TestOpenRefused: what is refused leaves nothing behind.
func TestOpenRefused(t *testing.T) {
	e, o := newEndpoint()
	e.add('a', 1)
	nowhere := plain()
	nowhere.Owner.Name = owner(0)
	short, other := plain(), plain()
	short.Rails = []token.RDMA{{Address: []byte{'a', 9}, Key: []byte{1, 2, 3}}}
	other.Rails = []token.RDMA{rail('a', 9, 5, 99)}
	good := made(t, plain())
	for what, c := range map[string]struct {
		packed []byte
		want   error
	}{
		"nothing":                     {nil, fi.EINVAL},
		"cut":                         {good[:len(good)-1], fi.EINVAL},
		"with another key":            {made(t, plain(), "secret"), fi.EINVAL},
		"an owner without a port":     {made(t, nowhere), fi.EINVAL},
		"a device's key is too short": {made(t, short), fi.EINVAL},
		"a device's key of another":   {made(t, other), fi.EINVAL},
	} {
		if _, err := o.Open(c.packed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	e.closed = true
	if _, err := o.Open(good); !errors.Is(err, errClosed) {
		t.Errorf("by an endpoint that is closed: %v", err)
	}
	if e.users.Load() != 0 || len(o.list) != 0 {
		t.Errorf("%d users, %d regions", e.users.Load(), len(o.list))
	}
}

// TestDeviceKeys: the key of a token is found for the peer that it is of, over the connection to the device that it is
// for, until the device has refused it or the region is closed.
func TestDeviceKeys(t *testing.T) {
	e, o := newEndpoint()
	e.add('a', 1)
	e.add('b', 2)
	e.add('a', 3)
	own := plain()
	own.Rails = []token.RDMA{rail('a', 9, 100, 100), rail('b', 9, 200, 100), rail('c', 9, 300, 7)}
	open := func(port uint16) *Remote {
		own.Owner.Name = owner(port)
		r, err := o.Open(made(t, own))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, second := open(7), open(8) // at addresses 0 and 1
	is := func(addr fi.Addr) func(fi.Addr) bool { return func(a fi.Addr) bool { return a == addr } }
	for _, c := range []struct {
		transport uint32
		device    []byte
		addr      fi.Addr
		key       uint64
		found     uint64 // 0: it is not
	}{
		{1, []byte{'a', 9}, 0, 11, 100}, {3, []byte{'a', 9}, 1, 11, 100}, {2, []byte{'b', 9}, 1, 11, 200},
		{1, []byte{'a', 8}, 0, 11, 0}, {2, []byte{'a', 9}, 0, 11, 0}, {1, []byte{'a', 9}, 2, 11, 0},
		{1, []byte{'a', 9}, 0, 12, 0}, {1, nil, 0, 11, 0},
	} {
		k, ok := o.Find(c.key, c.transport, c.device, is(c.addr))
		if ok != (c.found != 0) || k[0] != c.found {
			t.Errorf("%+v: %v %t", c, k, ok)
		}
	}
	o.Refused([]byte{'a', 9}, 11)
	if _, ok := o.Find(11, 1, []byte{'a', 9}, is(0)); ok || !first.leads() {
		t.Errorf("refused, found: %t, another leads there: %t", ok, first.leads())
	}
	o.Refused([]byte{'b', 9}, 11)
	if first.leads() || second.leads() {
		t.Error("all are refused, and one leads there")
	}
	third := open(7)
	for _, r := range []*Remote{first, second} {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := o.Find(11, 1, []byte{'a', 9}, is(0)); !ok {
		t.Error("the key of a region that is opened again is not found")
	}
	if err := third.Close(); err != nil || len(o.list) != 0 {
		t.Errorf("close: %v, %d regions", err, len(o.list))
	}
	if k, ok := o.Find(11, 1, []byte{'a', 9}, is(0)); ok || k != (hw.RemoteKey{}) {
		t.Error("the key of a region that is closed is found")
	}
}

// TestManyThreads opens, finds, refuses and closes from several threads.
func TestManyThreads(t *testing.T) {
	e, o := newEndpoint()
	e.known[owner(7)] = 0 // none inserts
	e.add('a', 1)
	own := plain()
	own.Rails = []token.RDMA{rail('a', 9, 100, 100)}
	packed := made(t, own)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				r, err := o.Open(packed)
				if err != nil {
					t.Error(err)
					return
				}
				o.Find(11, 1, []byte{'a', 9}, func(fi.Addr) bool { return true })
				_ = r.Info()
				o.Refused([]byte{'a', 9}, 11)
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if e.users.Load() != 0 || len(o.list) != 0 {
		t.Errorf("%d users, %d regions", e.users.Load(), len(o.list))
	}
}

// TestText has a token go through its text form and back.
func TestText(t *testing.T) {
	packed := made(t, plain())
	text, err := packed.MarshalText()
	if err != nil || packed.String() != string(text) || bytes.ContainsAny(text, " \n") {
		t.Fatalf("%q, %q, %v", text, packed, err)
	}
	var again, binary Token
	if err := again.UnmarshalText(text); err != nil || !bytes.Equal(again, packed) {
		t.Errorf("%x, %v", again, err)
	}
	b, _ := packed.MarshalBinary()
	if err := binary.UnmarshalBinary(b); err != nil || !bytes.Equal(binary, packed) {
		t.Errorf("%x, %v", binary, err)
	}
	if b[0]++; packed[0] == b[0] {
		t.Error("the bytes are shared")
	}
	long := make([]byte, token.MaxLen+1)
	for _, bad := range []error{again.UnmarshalText([]byte("no token")), again.UnmarshalBinary(long)} {
		if !errors.Is(bad, fi.EINVAL) {
			t.Error(bad)
		}
	}
	if fmt.Sprint(again) != packed.String() {
		t.Error("a token is changed by what is none")
	}
}
