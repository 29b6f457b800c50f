package eq

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

func open(t *testing.T, attr fi.EQAttr) *Queue {
	t.Helper()
	q, err := Open(&attr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

func TestReadWritePeek(t *testing.T) {
	q := open(t, fi.EQAttr{Flags: fi.Write, Size: 2})
	buf := make([]byte, 8)
	if _, _, err := q.Read(buf, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("empty: %v", err)
	}
	for i := range 2 {
		if n, err := q.Write(uint32(i), []byte{byte(i), 9}, 0); n != 2 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if _, err := q.Write(3, nil, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("full: %v", err)
	}
	for room := range 3 {
		number, n, err := q.Read(buf[:room], fi.Peek)
		if number != 0 || n != room || err != nil {
			t.Errorf("peek with room for %d: event %d, %d bytes, %v", room, number, n, err)
		}
	}
	for _, c := range []struct {
		flags uint64
		want  uint32
	}{{fi.Peek, 0}, {0, 0}, {fi.Peek, 1}, {0, 1}} {
		if number, n, err := q.Read(buf, c.flags); number != c.want || n != 2 || buf[0] != byte(c.want) || err != nil {
			t.Errorf("read: event %d of %d bytes, %v; want event %d", number, n, err, c.want)
		}
	}
	if n, err := q.Write(7, []byte{1, 2}, 0); n != 2 || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
	if number, n, err := q.Read(buf[:1], 0); number != 7 || n != 1 || err != nil {
		t.Errorf("short buffer: event %d, %d bytes, %v", number, n, err)
	}
	if _, _, err := q.Read(buf, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("after the short read: %v", err)
	}
}

func TestErrorsComeFirst(t *testing.T) {
	q := open(t, fi.EQAttr{})
	q.Post(Event{Number: 1})
	q.PostError(ErrEntry{Err: fi.EIO, Context: 7})
	if _, _, err := q.Read(nil, 0); !errors.Is(err, fi.EAVAIL) {
		t.Errorf("read with an error pending: %v", err)
	}
	if e, err := q.ReadErr(fi.Peek); err != nil || e.Context != 7 {
		t.Errorf("peek: %+v, %v", e, err)
	}
	if e, err := q.ReadErr(0); err != nil || e.Err != fi.EIO {
		t.Errorf("error: %+v, %v", e, err)
	}
	if _, err := q.ReadErr(0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("no error: %v", err)
	}
	if n, _, err := q.Read(nil, 0); n != 1 || err != nil {
		t.Errorf("event after the error: %d, %v", n, err)
	}
}

func TestRefusals(t *testing.T) {
	q := open(t, fi.EQAttr{})
	if _, err := q.Write(1, nil, 0); !errors.Is(err, fi.EINVAL) {
		t.Errorf("write without FI_WRITE: %v", err)
	}
	if _, _, err := q.Read(nil, fi.More); !errors.Is(err, fi.EBADFLAGS) {
		t.Errorf("read with FI_MORE: %v", err)
	}
	for _, attr := range []fi.EQAttr{{Flags: fi.Read}, {Size: maxSize + 1}, {WaitObj: 99}, {WaitObj: fi.WaitSet}} {
		if q, err := Open(&attr, nil); err == nil {
			t.Errorf("opened with %+v", attr)
			_ = q.Close()
		}
	}
	_ = q.Acquire()
	if err := q.Close(); !errors.Is(err, fi.EBUSY) {
		t.Errorf("close in use: %v", err)
	}
	q.Release()
}

func TestSReadSleepsUntilAnEvent(t *testing.T) {
	q := open(t, fi.EQAttr{WaitObj: fi.WaitFD})
	if _, _, err := q.SRead(nil, 20, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("nothing within 20 ms: %v", err)
	}
	const patience = time.Minute // only a wake-up that is lost takes so long
	for range 1000 {
		var posting sync.WaitGroup
		posting.Go(func() { q.Post(Event{Number: 5}) })
		begin := time.Now()
		n, _, err := q.SRead(nil, int(patience.Milliseconds()), 0)
		posting.Wait() // it still checks which to wake, and the queue is closed in the end
		if n != 5 || err != nil || time.Since(begin) >= patience {
			t.Fatalf("event %d, %v after %v", n, err, time.Since(begin))
		}
	}
}

func TestConnectionEvents(t *testing.T) {
	q := open(t, fi.EQAttr{})
	shown := 0
	q.ShowInfo(func(i *fi.Info) (uintptr, error) {
		shown++
		if i.Caps == 0 {
			return 0, fi.ENOMEM
		}
		return uintptr(i.Caps), nil
	}, func(uintptr) { t.Error("an info that was read is freed") })
	q.Post(CMEvent(fi.ConnReq, 5, &fi.Info{Caps: 77}, []byte("data")))
	buf := make([]byte, 64)
	if _, n, err := q.Read(buf[:cmFixed-1], fi.Peek); n != cmFixed-1 || err != nil || shown != 0 {
		t.Errorf("short of the fixed part: %d bytes, %v, shown %d times", n, err, shown)
	}
	for _, c := range []struct {
		room  int
		flags uint64
		want  int
	}{{cmFixed, fi.Peek, cmFixed}, {cmFixed + 2, fi.Peek, cmFixed + 2}, {64, 0, cmFixed + 4}} {
		number, n, err := q.Read(buf[:c.room], c.flags)
		if fi.EQEvent(number) != fi.ConnReq || n != c.want || err != nil || buf[0] != 5 || buf[8] != 77 {
			t.Errorf("room for %d: event %d, %d bytes % x, %v", c.room, number, n, buf[:n], err)
		}
	}
	if shown != 1 {
		t.Errorf("shown %d times", shown)
	}
	q.Post(CMEvent(fi.ConnReq, 5, &fi.Info{}, nil))
	if _, _, err := q.Read(buf, 0); !errors.Is(err, fi.ENOMEM) {
		t.Errorf("no memory: %v", err)
	}
	if e, err := q.Next(); err != nil || e.Info == nil || !e.IsCM() {
		t.Errorf("still there: %+v, %v", e, err)
	}
	if _, err := q.Next(); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("empty: %v", err)
	}
}

func TestForget(t *testing.T) {
	q := open(t, fi.EQAttr{})
	q.Post(CMEvent(fi.Connected, 5, nil, nil))
	q.Post(CMEvent(fi.Shutdown, 6, nil, nil))
	q.Post(Event{Number: uint32(fi.AVComplete), Entry: []byte{5, 0, 0, 0, 0, 0, 0, 0}})
	q.PostError(ErrEntry{FID: 5})
	q.Forget(5)
	for _, want := range []fi.EQEvent{fi.Shutdown, fi.AVComplete} {
		if e, err := q.Next(); fi.EQEvent(e.Number) != want || err != nil {
			t.Errorf("event %d, %v; want %d", e.Number, err, want)
		}
	}
}

// TestPeekedInfos: the queue frees what it made for readers that only peeked, once it is closed.
func TestPeekedInfos(t *testing.T) {
	const read, peeked, cut, forgotten, unseen = 1, 2, 3, 4, 5
	for first, want := range map[uint64]bool{read: false, peeked: true, cut: true, forgotten: true, unseen: false} {
		q, err := Open(&fi.EQAttr{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		freed := map[uintptr]int{}
		q.ShowInfo(func(i *fi.Info) (uintptr, error) { return uintptr(i.Caps), nil },
			func(addr uintptr) { freed[addr]++ })
		q.Post(CMEvent(fi.ConnReq, 5, &fi.Info{Caps: first}, nil))
		buf := make([]byte, cmFixed)
		if first != unseen {
			if _, _, err := q.Read(buf, fi.Peek); err != nil {
				t.Error(err)
			}
		}
		switch first {
		case read:
			_, _, err = q.Read(buf, 0)
		case cut:
			_, _, err = q.Read(nil, 0)
		case forgotten:
			q.Forget(5)
		}
		if err != nil || len(freed) != 0 {
			t.Errorf("case %d: %v, freed before the queue is closed: %v", first, err, freed)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if (freed[uintptr(first)] == 1) != want || len(freed) > 1 {
			t.Errorf("case %d: freed %v", first, freed)
		}
	}
}
