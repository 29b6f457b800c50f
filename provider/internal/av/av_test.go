package av

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// open opens an address vector to which every host is in reach but 10.0.0.9.
func open(t *testing.T, attr fi.AVAttr, keys int) *AV {
	t.Helper()
	a, err := Open(&attr, Options{
		Owner: t, Format: fi.AddrStr, Capacity: 100, Limit: MaxLines, Keys: keys, UserIDs: true,
		Resolve: func(node, service string) ([]names.Name, error) {
			n, err := names.Parse(fmt.Sprintf("fi_sockaddr_in://%s:%s", node, service))
			return []names.Name{n}, err
		},
		Reach: func(n names.Name) error {
			if n.WithPort(0).String() == "fi_sockaddr_in://10.0.0.9:0" {
				return fi.EHOSTUNREACH
			}
			return nil
		},
		Here:   func(names.Name) bool { return true },
		Closed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestInsertRemove: indexes are the lowest that are free, and what is out of reach gets none.
func TestInsertRemove(t *testing.T) {
	a := open(t, fi.AVAttr{}, 0)
	addrs, errs := make([]fi.Addr, 3), make([]int32, 3)
	list := []string{"fi_sockaddr_in://10.0.0.1:1", "fi_sockaddr_in://10.0.0.9:1", "fi_sockaddr_in://10.0.0.2:1"}
	n, err := a.InsertNames(list, &Insertion{Flags: fi.SyncErr, Addrs: addrs, Errs: errs})
	if err != nil || n != 2 || addrs[0] != 0 || addrs[1] != fi.AddrNotAvail || addrs[2] != 1 ||
		errs[1] != int32(fi.EHOSTUNREACH) {
		t.Errorf("inserted %d at %v: %v, %v", n, addrs, err, errs)
	}
	var removed []fi.Addr
	defer a.Subscribe(func(at fi.Addr) { removed = append(removed, at) })()
	if err := a.Remove([]fi.Addr{0}, 0); err != nil || len(removed) != 1 {
		t.Errorf("remove: %v, seen %v", err, removed)
	}
	n, err = a.InsertSym("10.0.1.1", 2, "5", 1, &Insertion{Addrs: addrs})
	if n != 2 || err != nil || addrs[0] != 0 || addrs[1] != 2 {
		t.Errorf("range: %d, %v at %v", n, err, addrs)
	}
	if err := a.Remove([]fi.Addr{7}, 0); !errors.Is(err, fi.EINVAL) {
		t.Errorf("remove what is not there: %v", err)
	}
}

// TestSubscribe: a subscriber is called when an address is not found any more and the generation has changed, so that
// what is found later at that generation is not of before.
func TestSubscribe(t *testing.T) {
	a := open(t, fi.AVAttr{}, 0)
	in := Insertion{Addrs: make([]fi.Addr, 2)}
	list := []string{"fi_sockaddr_in://10.0.0.1:1", "fi_sockaddr_in://10.0.0.2:1"}
	if _, err := a.InsertNames(list, &in); err != nil {
		t.Fatal(err)
	}
	seen, calls := a.Generation(), 0
	cancel := a.Subscribe(func(removed fi.Addr) {
		now := a.GenerationWord().Load()
		if _, found := a.Name(removed); found || removed != in.Addrs[calls] || now == seen {
			t.Errorf("address %d is removed: found %v, generation %d after %d", removed, found, now, seen)
		}
		seen = now
		calls++
	})
	if err := a.Remove(in.Addrs, 0); err != nil || calls != 2 {
		t.Errorf("removal: %v, %d calls", err, calls)
	}
	cancel()
}

// TestOnInsert: a listener is called once for each call that inserts, without the lock, before an event reports the
// insertion if one does, and not after it was taken away.
func TestOnInsert(t *testing.T) {
	for _, flags := range []uint64{0, fi.Event} {
		a := open(t, fi.AVAttr{Flags: flags}, 0)
		q, err := eq.Open(&fi.EQAttr{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.BindEQ(q, 0); err != nil {
			t.Fatal(err)
		}
		calls := 0
		cancel := a.OnInsert(func() {
			calls++
			a.SetFID(1) // takes the lock
			if _, _, err := q.Read(make([]byte, 256), 0); !errors.Is(err, fi.EAGAIN) {
				t.Errorf("flags %#x: there is an event: %v", flags, err)
			}
		})
		for i, list := range [][]string{
			{"fi_sockaddr_in://10.0.0.1:1", "fi_sockaddr_in://10.0.0.9:1", "fi_sockaddr_in://10.0.0.2:1"},
			{"fi_sockaddr_in://10.0.0.9:1"}, // out of reach
			{},
		} {
			if _, err := a.InsertNames(list, &Insertion{}); err != nil || calls != 1 {
				t.Errorf("flags %#x, insertion %d: %v, %d calls", flags, i, err, calls)
			}
		}
		cancel()
		if _, err := a.InsertSvc("10.0.0.3", "1", &Insertion{}); err != nil || calls != 1 {
			t.Errorf("flags %#x, after cancel: %v, %d calls", flags, err, calls)
		}
	}
}

// TestUsers: an address vector that is in use is not closed, and one that is closed gets no user.
func TestUsers(t *testing.T) {
	a := open(t, fi.AVAttr{}, 0)
	s, err := a.OpenSet(&fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail})
	if err != nil || !s.Of(a) || s.Of(open(t, fi.AVAttr{}, 0)) {
		t.Fatalf("set: %v", err)
	}
	if err := a.Close(); !errors.Is(err, fi.EBUSY) {
		t.Errorf("close with a set: %v", err)
	}
	if s.Close() != nil || s.Of(a) || a.Close() != nil {
		t.Error("not closed")
	}
	if err := a.Acquire(); !errors.Is(err, fi.EBADF) {
		t.Errorf("use of a closed one: %v", err)
	}
}

// TestKeys: with authorisation keys every address has one, which stays while it is used.
func TestKeys(t *testing.T) {
	a := open(t, fi.AVAttr{}, 1)
	k, err := a.InsertAuthKey([]byte("secret"), 0)
	if err != nil || a.KeyNumber(k) != 1 {
		t.Fatalf("key %#x: %v", k, err)
	}
	if _, err := a.InsertAuthKey([]byte("other"), 0); !errors.Is(err, fi.ENOSPC) {
		t.Errorf("one too many: %v", err)
	}
	addrs := []fi.Addr{k}
	n, err := a.InsertNames([]string{"fi_sockaddr_in://10.0.0.1:1"}, &Insertion{Flags: fi.AuthKey, Addrs: addrs})
	if n != 1 || err != nil {
		t.Errorf("inserted %d: %v", n, err)
	}
	if err := a.Remove([]fi.Addr{k}, fi.AuthKey); !errors.Is(err, fi.EBUSY) {
		t.Errorf("remove a key that is used: %v", err)
	}
	if err := a.Remove(addrs, 0); err != nil {
		t.Error(err)
	}
	if err := a.Remove([]fi.Addr{k}, fi.AuthKey); err != nil || a.KeyNumber(k) != 0 {
		t.Errorf("remove a key: %v", err)
	}
}

// TestRemoveKeys: of several keys those go that can, whichever of the others comes first, and the first error is that
// of the call.
func TestRemoveKeys(t *testing.T) {
	a := open(t, fi.AVAttr{}, 4)
	keys := make([]fi.Addr, 4)
	for i := range keys {
		var err error
		if keys[i], err = a.InsertAuthKey([]byte{byte(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := a.HoldKeys(a.KeyNumber(keys[1]))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Remove([]fi.Addr{keys[0], keys[1], 77, keys[2]}, fi.AuthKey); !errors.Is(err, fi.EBUSY) {
		t.Errorf("remove keys, one in use: %v", err)
	}
	for i, there := range []bool{false, true, false, true} {
		if got := a.KeyNumber(keys[i]) != 0; got != there {
			t.Errorf("key %d is there: %v", i, got)
		}
	}
	a.DropKeys(kept)
	if err := a.Remove([]fi.Addr{77, keys[1], keys[3]}, fi.AuthKey); !errors.Is(err, fi.EINVAL) || len(a.keys) != 4 {
		t.Errorf("remove keys, one unknown: %v", err)
	}
	if _, err := a.HoldKeys(0); !errors.Is(err, fi.EINVAL) {
		t.Errorf("keys are left: %v", err)
	}
}

// TestInsertNothing: an insertion of no addresses is one: its arguments are checked, and it has its event.
func TestInsertNothing(t *testing.T) {
	a := open(t, fi.AVAttr{Flags: fi.Event}, 0)
	if _, err := a.Insert(nil, 0, &Insertion{}); !errors.Is(err, fi.ENOEQ) {
		t.Errorf("without an event queue: %v", err)
	}
	q, err := eq.Open(&fi.EQAttr{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.BindEQ(q, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Insert(nil, 0, &Insertion{Context: 5}); n != 0 || err != nil {
		t.Errorf("inserted %d: %v", n, err)
	}
	number, _, err := q.Read(make([]byte, 256), 0)
	if err != nil || fi.EQEvent(number) != fi.AVComplete {
		t.Errorf("event %d: %v", number, err)
	}
	b := open(t, fi.AVAttr{}, 0)
	for flags, want := range map[uint64]error{1 << 40: fi.EBADFLAGS, fi.SyncErr: fi.EINVAL, fi.More: nil} {
		if n, err := b.Insert(nil, 0, &Insertion{Flags: flags}); n != 0 || !errors.Is(err, want) {
			t.Errorf("flags %#x: %d, %v", flags, n, err)
		}
	}
	if n, err := b.Insert(nil, 0, &Insertion{Flags: fi.SyncErr, Errs: []int32{}}); n != 0 || err != nil {
		t.Errorf("results of none: %d, %v", n, err)
	}
}

// TestUserIDOfRemoved: the id that a thread sets while another removes the address is not that of the next one.
func TestUserIDOfRemoved(t *testing.T) {
	a := open(t, fi.AVAttr{Flags: fi.AVUserID}, 0)
	list := []string{"fi_sockaddr_in://10.0.0.1:1"}
	if n, err := a.InsertNames(list, &Insertion{}); n != 1 || err != nil {
		t.Fatal(err)
	}
	done, err := a.change()
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() { result <- a.SetUserID(0, 5, 0) }()
	time.Sleep(20 * time.Millisecond) // until it waits for the lock, where the processor is free
	a.addrs.Remove(0)
	done()
	if err := <-result; !errors.Is(err, fi.EINVAL) {
		t.Errorf("id of a removed address: %v", err)
	}
	if n, err := a.InsertNames(list, &Insertion{}); n != 1 || err != nil {
		t.Fatal(err)
	}
	if got := a.Reported(0); got != fi.AddrNotAvail {
		t.Errorf("the next address is called %d", got)
	}
}
