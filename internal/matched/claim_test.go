package matched

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// claimer is a device that sets messages aside.
type claimer struct {
	device
	claimed []hw.MatchReceive
	taken   []hw.Claim
	by      []hw.MatchReceive
}

func (d *claimer) Claim(r *hw.MatchReceive) error {
	d.claimed = append(d.claimed, *r)
	return d.err
}

func (d *claimer) ReceiveClaimed(c hw.Claim, r *hw.MatchReceive) error {
	if d.err == nil {
		d.taken, d.by = append(d.taken, c), append(d.by, *r)
	}
	return d.err
}

// find has a search with flags find a message, which the device names so.
func (d *claimer) find(t *testing.T, e *Endpoint, flags, context uint64, c hw.Claim) {
	t.Helper()
	r := Receive{Src: fi.AddrUnspec, Tagged: true, Tag: 5, Flags: flags, Context: context}
	if err := e.Receive(&r); err != nil {
		t.Fatal(err)
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchFound, Context: d.claimed[len(d.claimed)-1].Context, From: 11, Tagged: true,
		Tag: 5, Wanted: 77, Last: true, Claim: c})
}

// TestClaims: what a search has set aside goes to the receive with its context, the oldest first, and only once; also
// when the device has no room at first.
func TestClaims(t *testing.T) {
	d := &claimer{}
	e, ended := openOn(d, d)
	for k, c := range []uint64{7, 8, 7} {
		d.find(t, e, fi.Peek|fi.Claim, c, hw.Claim(k+1))
	}
	if n := (*ended)[2]; n.Err != fi.Success || !n.Search || n.Entry.Len != 77 || n.Entry.Context != 7 {
		t.Errorf("a search that claims: %+v", n)
	}
	receive := func(tagged bool, context, flags uint64) error {
		return e.Receive(&Receive{Src: fi.AddrUnspec, Tagged: tagged, Flags: fi.Claim | flags, Context: context})
	}
	d.err = hw.ErrNoResource
	if err := receive(true, 7, 0); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("without room: %v", err)
	}
	d.err = nil
	for _, c := range []struct {
		context, flags uint64
		tagged         bool
		want           error
	}{
		{9, 0, true, fi.ENOMSG}, {7, 0, false, fi.ENOMSG}, {7, 0, true, nil}, {7, fi.Discard, true, nil},
		{7, 0, true, fi.ENOMSG}, {8, 0, true, nil},
	} {
		if err := receive(c.tagged, c.context, c.flags); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if len(d.taken) != 3 || d.taken[0] != 1 || d.taken[1] != 3 || d.taken[2] != 2 {
		t.Errorf("received %v", d.taken)
	}
	*ended = nil
	for k := range d.by {
		d.on(&hw.MatchEvent{Kind: hw.MatchReceived, Context: d.by[k].Context, Wanted: 8, Last: true})
	}
	for k, want := range []fi.Errno{fi.ETRUNC, fi.Success, fi.ETRUNC} {
		if n := (*ended)[k]; n.Err != want || n.Search || n.Bytes != 0 {
			t.Errorf("receive %d: %+v", k, n)
		}
	}
	if e.Room() != 4 {
		t.Errorf("room for %d", e.Room())
	}
}

// TestDiscards: what a search is to throw away is, as soon as the device has room, and nothing is said of it but what
// the search finds.
func TestDiscards(t *testing.T) {
	d := &claimer{}
	e, ended := openOn(d, d)
	d.find(t, e, fi.Peek|fi.Discard, 7, 1)
	if len(d.taken) != 1 || d.by[0].Local.Len != 0 {
		t.Fatalf("taken: %v by %+v", d.taken, d.by)
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchReceived, Context: d.by[0].Context, Wanted: 77, Last: true})
	if err := e.Receive(&Receive{Src: fi.AddrUnspec, Tagged: true, Flags: fi.Peek | fi.Discard}); err != nil {
		t.Fatal(err)
	}
	d.err = hw.ErrNoResource
	d.on(&hw.MatchEvent{Kind: hw.MatchFound, Context: d.claimed[1].Context, Last: true, Claim: 2})
	d.err = nil
	if e.Progress(1); len(d.taken) != 2 || d.taken[1] != 2 {
		t.Errorf("taken: %v", d.taken)
	}
	if len(*ended) != 2 || (*ended)[0].Err != fi.Success || (*ended)[0].Entry.Len != 77 || e.Room() != 4 {
		t.Errorf("%+v, room for %d", *ended, e.Room())
	}
	for flags, want := range map[uint64]error{
		fi.Discard: fi.EBADFLAGS, fi.Peek | fi.Claim | fi.Discard: fi.EBADFLAGS,
		fi.Claim | fi.MultiRecv: fi.EINVAL,
	} {
		if err := e.Receive(&Receive{Src: fi.AddrUnspec, Flags: flags}); !errors.Is(err, want) {
			t.Errorf("flags %#x: %v", flags, err)
		}
	}
}
