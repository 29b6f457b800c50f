package exchange

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// TestEmptyLink: as soon as the own link has sent everything, another pair begins, although no acknowledgement has
// come; not before, and not beyond Most.
func TestEmptyLink(t *testing.T) {
	e, now := settle(t, 7, Adaptive, 1<<20)
	e.cfg.Most = 3
	for begun := 1; begun <= e.cfg.Most; begun++ {
		bytes := int64(0)
		for _, a := range drain(e, now) {
			bytes += a.Head.Length
		}
		if bytes == 0 || e.begun.count != begun {
			t.Fatalf("%d peers have begun, want %d; %d bytes", e.begun.count, begun, bytes)
		}
		at, ok := e.Wake()
		if begun == e.cfg.Most {
			if ok {
				t.Errorf("a timer while %d peers are sent to, at most %d", begun, e.cfg.Most)
			}
			break
		}
		if sent := now.Add(e.airtime(bytes)); !ok || at < sent-1000 || at > sent+1000 {
			t.Fatalf("the link is empty at %v, but the timer is set to %v, %v", sent, at, ok)
		}
		e.Tick(at - 1)
		if e.begun.count != begun {
			t.Error("a pair begins while the link is busy")
		}
		now = at
		e.Tick(now)
	}
	for p, want := range []int8{Early, Early, Early, 0} {
		if n := e.at(int32(p)).flying; n != want {
			t.Errorf("%d chunks are on their way to peer %d", n, p)
		}
	}
}

// receiving is an engine, and when it began, that has nothing to send and expects a slice from each peer over a link of
// 1 Gbit/s.
func receiving(t *testing.T, peers int, slice int64) (*Engine, congestion.Time) {
	t.Helper()
	e, err := New(DefaultConfig(peers))
	if err != nil {
		t.Fatal(err)
	}
	in := make([]int64, peers)
	for i := range in {
		in[i] = slice
	}
	e.in.rate = 125e6
	now := e.started.Add(time.Second)
	e.Start(now, make([]int64, peers), in)
	return e, now
}

// TestInvitesAgain: senders of which a chunk has ended are invited again, after those that have more left; senders in
// the middle of a chunk, and those that have sent everything, are not.
func TestInvitesAgain(t *testing.T) {
	const peers, slice, part = 5, 1 << 20, 100 << 10
	e, now := receiving(t, peers, slice)
	chunk := func(from int, n int64, ends bool) {
		off := e.at(int32(from)).in.got
		head := Chunk{Total: slice, Offset: off, Length: n}
		if !ends {
			head.Length++
		}
		if !e.Arrived(now, from, &head, off, n, ends) {
			t.Fatalf("a chunk of peer %d is refused", from)
		}
	}
	chunk(0, part, true)
	chunk(1, 2*part, true)
	chunk(2, slice, true)
	chunk(3, part, true)
	chunk(3, part, false)
	drain(e, now)
	var invited []int
	for range 10 {
		now = now.Add(e.in.period())
		e.Tick(now)
		for _, a := range drain(e, now) {
			if a.Word.Invite {
				invited = append(invited, a.Peer)
			}
		}
	}
	if len(invited) != 3 || invited[0] != 4 || invited[1] != 0 || invited[2] != 1 {
		t.Errorf("peers %v are invited, want 4, 0 and 1", invited)
	}
}

// TestInvitesFirst: a member of which nothing is known and to which nothing comes invites one sender, for which it is
// the next member, and no second one until something has come.
func TestInvitesFirst(t *testing.T) {
	const peers = 5
	e, err := New(DefaultConfig(peers))
	if err != nil {
		t.Fatal(err)
	}
	in := slices.Repeat([]int64{1 << 20}, peers)
	now := e.started.Add(time.Second)
	e.Start(now, make([]int64, peers), in)
	drain(e, now)
	at, ok := e.Wake()
	if !ok || at != now.Add(e.in.period()) {
		t.Fatalf("the timer runs out at %v, %v, want after %v", at.Sub(now), ok, e.in.period())
	}
	e.Tick(at)
	if all := drain(e, at); len(all) != 1 || !all[0].Word.Invite || all[0].Peer != peers-1 {
		t.Fatalf("%+v, want one invitation of peer %d", all, peers-1)
	}
	if again, ok := e.Wake(); ok {
		t.Errorf("the timer runs out again, after %v", again.Sub(at))
	}
	at = at.Add(e.in.period())
	e.Tick(at)
	if all := drain(e, at); len(all) != 0 {
		t.Errorf("%+v, want nothing more", all)
	}
}

// TestHeard: where all pairs have begun, the whole slice of a peer goes as soon as something has come from it, although
// it acknowledges nothing; not while another peer waits, and not over a path that is slow beside the own link.
func TestHeard(t *testing.T) {
	const peers, slice, slow = 3, 1 << 20, 2
	for _, most := range []int{0, 1} {
		e, err := New(DefaultConfig(peers))
		if err != nil {
			t.Fatal(err)
		}
		e.cfg.Most, e.cfg.Store = most, NewStore(1<<20, 1<<16)
		all := []int64{slice, slice, slice}
		now := e.started.Add(time.Second)
		e.Start(now, all, all)
		e.rate, e.chunk = 125e6, e.cfg.Chunk
		for i := range all {
			e.at(int32(i)).rate = e.rate
		}
		e.at(slow).rate = e.rate / 100
		for range peers {
			drain(e, now)
			at, ok := e.Wake()
			if !ok {
				break
			}
			now = at
			e.Tick(now)
		}
		for i := range all {
			head := Chunk{Total: slice, Length: e.chunk}
			if !e.Arrived(now, i, &head, 0, e.chunk, true) {
				t.Fatalf("the chunk of peer %d is refused", i)
			}
		}
		drain(e, now)
		for i := range all {
			left := e.at(int32(i)).left()
			if whole := left == 0; whole != (most == 0 && i != slow) {
				t.Errorf("at most %d at a time: %d bytes left for peer %d", most, left, i)
			}
		}
	}
}
