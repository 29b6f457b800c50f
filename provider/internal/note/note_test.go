package note

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// bound is what waits at either side of the tests' endpoints.
const bound = 256 << 10

// message is one on its way between two nodes.
type message struct {
	from          *node
	id            uint64
	head, payload []byte
}

// node is an endpoint of the tests. What it receives waits until it makes progress.
type node struct {
	t         testing.TB
	notes     Notes
	number    hw.Source // as a source of others, and as their peer
	all       *[]*node
	in        []message
	maxPart   int
	busy      int // so many messages find no room
	gone      error
	malformed int
	answers   int // credit that it has given
	written   []byte
	refuses   fi.Errno // of writes
}

// newNodes are n nodes that reach each other; with places for so many peers in the memory that the data plane shares.
func newNodes(t testing.TB, n, places int) []*node {
	t.Helper()
	list := []*node{}
	for i := range n {
		x := &node{t: t, number: hw.Source(i), all: &list, maxPart: 4096}
		x.notes.Init(x, bound)
		counters, _, err := stats.OpenEndpoint("", "test", false, []byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.notes.Open(places, true, true, counters); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.notes.Close(); counters.Close() })
		list = append(list, x)
	}
	return list
}

func (x *node) Notify() {}

func (x *node) Serve() { x.notes.Pump(x) }

func (x *node) Progress() {
	for in := x.in; len(in) != 0; in = in[1:] {
		m := &in[0]
		x.in = in[1:]
		x.notes.Handle(x, m.from.number, m.id, m.head, m.payload)
	}
	x.in = nil
	x.notes.Pump(x)
}

// toPeer is a link of a node to another.
type toPeer struct {
	*node
	count *int64
}

func (p toPeer) Number() uint32        { return uint32(p.number) }
func (p toPeer) Count(n int64)         { atomic.AddInt64(p.count, n) }
func (p toPeer) Ring() (uintptr, bool) { return 0, false }
func (p toPeer) MaxPart() int          { return p.maxPart }

// links are to all nodes.
func links(nodes []*node) []toPeer {
	list := make([]toPeer, len(nodes))
	for i, x := range nodes {
		list[i] = toPeer{x, new(int64)}
	}
	return list
}

func (x *node) Connect(p Peer) (Path, error) {
	to := p.(toPeer)
	return to, to.gone
}

// send has a message arrive unless there is no room.
func (x *node) send(p Path, id uint64, head, payload []byte) error {
	if x.busy > 0 {
		x.busy--
		return fi.EAGAIN
	}
	to := p.(toPeer)
	to.in = append(to.in, message{x, id, bytes.Clone(head), bytes.Clone(payload)})
	return nil
}

func (x *node) Send(p Path, stream uint64, h *wire.Notice, part []byte) error {
	var b [wire.NoticeBytes]byte
	return x.send(p, stream, h.Put(b[:]), part)
}

func (x *node) Ask(p Path, stream uint64, w wire.NoticeWords) error {
	var b [wire.NoticeWordsBytes]byte
	return x.send(p, stream, w.Put(b[:]), nil)
}

func (x *node) Name(src hw.Source) []byte           { return []byte{byte(src), 'n'} }
func (x *node) Addr(src hw.Source) fi.Addr          { return fi.Addr(src) + 100 }
func (x *node) Owns(src hw.Source, n uint32) bool   { return uint32(src) == n }
func (x *node) Malformed(hw.Source, string, ...any) { x.malformed++ }

func (x *node) Perform(_ hw.Source, _ wire.Write, _ uint64, data []byte) fi.Errno {
	x.written = append(x.written, data...)
	return x.refuses
}

func (x *node) Answer(src hw.Source, stream uint64, w wire.NoticeWords) {
	to := (*x.all)[src]
	var b [wire.NoticeWordsBytes]byte
	x.answers++
	to.in = append(to.in, message{x, stream, bytes.Clone(w.Put(b[:])), nil})
}

// posted is a post of a notification.
type posted struct {
	Outgoing
	ends []fi.Errno
}

func (p *posted) NoteEnded(status fi.Errno) { p.ends = append(p.ends, status) }

// post posts a notification alone, or none for fi.EAGAIN.
func (x *node) post(to toPeer, data []byte, ack bool) (*posted, error) {
	p := &posted{Outgoing: Outgoing{Op: Alone, Ack: ack}}
	p.Owner = p
	if err := x.notes.Out.Add(&p.Outgoing, to, data, false); err != nil {
		return nil, err
	}
	x.notes.Out.Settle(&p.Outgoing, fi.Success)
	return p, nil
}

// take takes all that has arrived.
func (x *node) take() (list []Note) {
	x.notes.In.Take(1<<30, func(_ int, n *Note) bool {
		list = append(list, *n)
		return true
	})
	return list
}

// waiting is what has arrived and is not taken, with what has arrived in part.
func (b *Inbox) waiting() (cost uint64) {
	for _, in := range b.streams {
		cost += in.arrived() - in.taken()
		if in.part != nil {
			cost += in.part.head.Cost()
		}
	}
	return cost
}

// pattern is n bytes that depend on seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + seed
	}
	return b
}

// eachMemory runs f with places in the shared memory and without.
func eachMemory(t *testing.T, f func(t *testing.T, places int)) {
	t.Run("shared", func(t *testing.T) { f(t, 8) })
	t.Run("own", func(t *testing.T) { f(t, 0) })
}

// TestArrives has notifications of many lengths arrive once, as they were sent.
func TestArrives(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		nodes := newNodes(t, 2, places)
		x, y, to := nodes[0], nodes[1], links(nodes)
		x.notes.Out.SetAgent("the sender")
		for _, n := range []int{0, 1, 32, 5000, 16 << 10, Longest} {
			data := pattern(n, 3)
			p := &posted{Outgoing: Outgoing{Op: Write, Tag: uint64(n), Ack: true}}
			p.Owner = p
			if err := x.notes.Out.Add(&p.Outgoing, to[1], data, false); err != nil {
				t.Fatal(err)
			}
			y.Progress()
			if list := y.take(); len(list) != 0 {
				t.Fatal("a notification came before its post had ended")
			}
			x.notes.Out.Settle(&p.Outgoing, fi.Success)
			var list []Note
			for range 10 {
				x.Progress()
				list = append(list, y.take()...)
			}
			if len(list) != 1 || !bytes.Equal(list[0].Data, data) {
				t.Fatalf("%d bytes: %d notifications", n, len(list))
			}
			got := list[0]
			got.Data = nil
			want := Note{Src: 100, Name: []byte("\x00n"), Agent: "the sender", Tag: uint64(n), Op: Write}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%d bytes: %+v, want %+v", n, got, want)
			}
			if len(p.ends) != 1 || p.ends[0] != fi.Success || p.Len() != uint64(n) || *to[1].count != 0 {
				t.Fatalf("%d bytes: ended %v, %d wait for the peer", n, p.ends, *to[1].count)
			}
		}
		if y.malformed+x.malformed != 0 {
			t.Errorf("%d messages are malformed", y.malformed+x.malformed)
		}
	})
}

// TestOrder has notifications arrive in the order of their posts, whichever ends first, without those whose posts
// failed and did not ask for one.
func TestOrder(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		nodes := newNodes(t, 2, places)
		x, y, to := nodes[0], nodes[1], links(nodes)
		rnd := rand.New(rand.NewPCG(1, 2))
		var want, got []uint32
		var open []*posted
		ended := 0
		step := func() {
			x.busy = rnd.IntN(3)
			x.Progress()
			for _, n := range y.take() {
				got = append(got, binary.LittleEndian.Uint32(n.Data))
			}
			for len(open) != 0 && (len(open) > 20 || rnd.IntN(2) == 0) {
				i := rnd.IntN(len(open))
				p := open[i]
				open = append(open[:i], open[i+1:]...)
				status := fi.Success
				if p.Context == 1 {
					status = fi.EIO
				}
				x.notes.Out.Settle(&p.Outgoing, status)
			}
		}
		const total = 300
		var all []*posted
		for i := range uint32(total) {
			data := binary.LittleEndian.AppendUint32(nil, i)
			data = append(data, make([]byte, rnd.IntN(9000)*rnd.IntN(2))...)
			p := &posted{Outgoing: Outgoing{Op: Read, OnError: i%2 == 0, Ack: i%3 == 0}}
			p.Owner, p.Context = p, uint64(rnd.IntN(4))
			for x.notes.Out.Add(&p.Outgoing, to[1], data, false) != nil {
				step()
			}
			if all, open = append(all, p), append(open, p); p.Context != 1 || p.OnError {
				want = append(want, i)
			}
		}
		for range 10000 {
			if step(); len(got) == len(want) && len(open) == 0 {
				break
			}
		}
		x.busy = 0
		x.Progress()
		if len(got) != len(want) {
			t.Fatalf("%d notifications, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("notification %d is that of post %d, want %d", i, got[i], want[i])
			}
		}
		for i, p := range all {
			status := fi.Success
			if p.Context == 1 {
				status = fi.EIO
			}
			if len(p.ends) == 1 && p.ends[0] == status {
				ended++
			} else {
				t.Errorf("post %d ended with %v", i, p.ends)
			}
		}
		if ended != total || x.notes.Out.bytes.Load() != 0 || *to[1].count != 0 {
			t.Errorf("%d of %d ended, %d bytes are queued", ended, total, x.notes.Out.bytes.Load())
		}
	})
}

// TestBound has a receiver that takes none keep a bounded number; its sender waits, and another one does not.
func TestBound(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		nodes := newNodes(t, 3, places)
		x, z, y, to := nodes[0], nodes[1], nodes[2], links(nodes)
		data := pattern(60<<10, 3)
		var sent []*posted
		for range 100 {
			if p, err := x.post(to[2], data, false); err == nil {
				sent = append(sent, p)
			} else if !errors.Is(err, fi.EAGAIN) {
				t.Fatal(err)
			}
			y.Progress()
			x.Progress()
		}
		if n := y.notes.In.waiting(); n > bound+window || n < bound/2 {
			t.Errorf("%d bytes wait", n)
		}
		if ends := sent[len(sent)-1].ends; len(ends) != 0 || len(sent) > 12 {
			t.Errorf("%d posts, the last ended %v", len(sent), ends)
		}
		if p, err := z.post(to[2], []byte("from z"), false); err != nil || len(p.ends) != 1 {
			t.Errorf("another sender: %v, %v", p, err)
		}
		got := 0
		for range 100 {
			for _, n := range y.take() {
				if string(n.Data) != "from z" && bytes.Equal(n.Data, data) {
					got++
				}
			}
			x.Progress()
		}
		in := &y.notes.In
		if got != len(sent) || in.waiting() != 0 || in.granted > 2*extra || len(in.askers) != 0 {
			t.Errorf("%d of %d, %d bytes wait, %d granted, %d ask", got, len(sent), in.waiting(),
				in.granted, len(in.askers))
		}
	})
}

// TestGrants has a receiver that takes what comes give credit for much more than a window at a time.
func TestGrants(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		nodes := newNodes(t, 2, places)
		x, y, to := nodes[0], nodes[1], links(nodes)
		const count = 4 * extra / 1024
		for range count {
			if _, err := x.post(to[1], pattern(1024, 1), false); err != nil {
				t.Fatal(err)
			}
			y.Progress()
			y.take()
			y.Progress()
			x.Progress()
		}
		// by the window alone it would come for each half of it
		if most := count * 1024 / (2 * window); y.answers == 0 || y.answers > most {
			t.Errorf("credit came %d times, at most %d is enough", y.answers, most)
		}
	})
}

// TestEnds takes back what waits for room, and ends what is left when its receiver is gone.
func TestEnds(t *testing.T) {
	nodes := newNodes(t, 2, 8)
	x, y, to := nodes[0], nodes[1], links(nodes)
	var sent []*posted
	for range 50 {
		if p, err := x.post(to[1], make([]byte, Longest), true); err == nil {
			p.Context = uint64(len(sent))
			sent = append(sent, p)
		}
		x.Progress()
	}
	last := len(sent) - 1
	if !x.notes.Out.Cancel(uint64(last)) || x.notes.Out.Cancel(12345) {
		t.Error("cancel")
	}
	if ends := sent[last].ends; len(ends) != 1 || ends[0] != fi.ECANCELED {
		t.Errorf("canceled: %v", ends)
	}
	open := &posted{}
	open.Owner = open
	if err := x.notes.Out.Add(&open.Outgoing, to[1], nil, true); err != nil {
		t.Fatal(err)
	}
	y.gone = fi.ECONNRESET
	x.notes.Out.Lost(to[1], fi.ECONNRESET)
	for i, p := range sent[:last] {
		if len(p.ends) != 1 || p.ends[0] != fi.ECONNRESET {
			t.Errorf("post %d ended with %v", i, p.ends)
		}
	}
	if len(open.ends) != 0 {
		t.Error("a notification ended before its post")
	}
	x.notes.Out.Settle(&open.Outgoing, fi.Success)
	if len(open.ends) != 1 || open.ends[0] != fi.ECONNRESET || x.notes.Out.bytes.Load() != 0 || *to[1].count != 0 {
		t.Errorf("ended %v, %d bytes are queued", open.ends, x.notes.Out.bytes.Load())
	}
	if q, line := len(x.notes.Out.queues), &x.notes.memory.outs[1]; q != 0 || line.Stream != 0 {
		t.Errorf("%d queues, stream %#x to a receiver that is gone", q, line.Stream)
	}
	x.Progress() // which the queue that has ended may still wait for
	if line := &x.notes.memory.outs[1]; line.Open != 0 {
		t.Error("the data plane may send over a stream that has ended")
	}
	dropped := &posted{}
	if err := x.notes.Out.Add(&dropped.Outgoing, to[1], nil, true); err != nil {
		t.Fatal(err)
	}
	if x.notes.Out.Take(&dropped.Outgoing, to[1]); x.notes.Out.bytes.Load() != 0 || *to[1].count != 0 {
		t.Error("a post that is refused counts")
	}
}

// TestSourceLost keeps what a sender that is gone has sent, and lets its number be another's.
func TestSourceLost(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		nodes := newNodes(t, 2, places)
		x, y, to := nodes[0], nodes[1], links(nodes)
		if _, err := x.post(to[1], []byte("first"), false); err != nil {
			t.Fatal(err)
		}
		y.Progress()
		y.notes.In.SourceLost(x.number)
		x.notes.Out.Lost(to[1], fi.ECONNRESET)
		if len(y.notes.In.streams) != 0 {
			t.Error("the stream is there still")
		}
		if _, err := x.post(to[1], []byte("second"), false); err != nil {
			t.Fatal(err)
		}
		y.Progress()
		list := y.take()
		if len(list) != 2 || string(list[0].Data) != "first" || string(list[1].Data) != "second" {
			t.Errorf("%+v", list)
		}
	})
}

// TestWithWrite performs a write, and then its notification is there, unless the write is refused.
func TestWithWrite(t *testing.T) {
	nodes := newNodes(t, 2, 8)
	y := nodes[1]
	head := make([]byte, wire.NoticeMoveBytes)
	start := uint64(0)
	for _, refuses := range []fi.Errno{fi.Success, fi.EACCES, fi.Success} {
		y.written, y.refuses = nil, refuses
		h := wire.Notice{Op: uint8(Write), Start: start, Length: 4}
		start += h.Cost()
		h.Put(head)
		head[0] = wire.NoticeMove
		binary.LittleEndian.PutUint64(head[wire.NoticeBytes+16:], 5)
		y.notes.Handle(y, 0, 77, head, []byte("noteplace"))
		list := y.take()
		if string(y.written) != "place" || len(list) != 1 == (refuses == fi.Success) || y.malformed != 0 {
			t.Errorf("%v: wrote %q, %+v", refuses, y.written, list)
		}
	}
	y.notes.Handle(y, 0, 77, head[:len(head)-1], []byte("noteplace"))
	if y.malformed != 1 {
		t.Error("a head that is too short")
	}
}

// TestShort takes a short head for the next notification of its sender's stream, or refuses it.
func TestShort(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		nodes := newNodes(t, 2, places)
		x, y, to := nodes[0], nodes[1], links(nodes)
		if _, err := x.post(to[1], []byte("first"), false); err != nil {
			t.Fatal(err)
		}
		if len(y.take()) != 1 {
			t.Fatal("it did not come")
		}
		for _, s := range y.notes.In.streams {
			for _, c := range []struct {
				off  uint32
				head int
				want int
			}{{1, 8, 0}, {0, 7, 0}, {0, 8, 1}, {0, 9, 0}} {
				mark := hot.NoticeMark(s.id, s.arrived()) + c.off
				head := []byte{wire.NoticeBrief, uint8(Alone), 0, 0}
				head = binary.LittleEndian.AppendUint32(head, mark)
				bad := y.malformed
				y.notes.Handle(y, s.src, 77, append(head, 0)[:c.head], []byte("second"))
				list := y.take()
				if len(list) != c.want || y.malformed-bad != 1-c.want {
					t.Errorf("%+v: %+v, %d malformed", c, list, y.malformed-bad)
				}
				for _, n := range list {
					if string(n.Data) != "second" || n.Tag != 77 {
						t.Errorf("%+v: %+v", c, n)
					}
				}
			}
		}
	})
}

// FuzzNotice: what parses is what Put writes, and no message of a peer's makes an endpoint keep what it has not
// granted.
func FuzzNotice(f *testing.F) {
	var b [wire.NoticeBytes]byte
	f.Add((&wire.Notice{Op: uint8(Read), Agent: 3, Ack: true, Start: 5, Tag: 6, Length: 9,
		Offset: 1}).Put(b[:]), []byte("x"))
	f.Add((&wire.Notice{}).Put(b[:]), []byte{})
	f.Add((&wire.NoticeWords{Kind: wire.NoticeAsk, A: 100, B: 200}).Put(b[:]), []byte{})
	f.Add([]byte{wire.NoticeBrief, uint8(Alone), 0, 0, 1, 2, 3, 4}, []byte("x"))
	f.Add((&wire.NoticeWords{Kind: wire.NoticeCredit, A: 200, B: 100}).Put(b[:]), []byte{})
	long := append((&wire.Notice{Start: 5}).Put(b[:]), make([]byte, wire.NoticeMoveBytes-wire.NoticeBytes)...)
	f.Add(long, []byte("x"))
	nodes := newNodes(f, 2, 8)
	x, y, to := nodes[0], nodes[1], links(nodes)
	if _, err := x.post(to[1], []byte("first"), false); err != nil {
		f.Fatal(err)
	}
	y.Progress()
	f.Fuzz(func(t *testing.T, head, payload []byte) {
		var h wire.Notice
		var again [wire.NoticeBytes]byte
		if h.Parse(head, len(payload)) && !bytes.Equal(h.Put(again[:]), head) && head[6]|head[7] == 0 {
			t.Fatalf("%x became %x", head, again)
		}
		y.written, x.in = nil, nil
		y.notes.Handle(y, x.number, 77, head, payload)
		y.notes.Pump(y)
		if n := y.notes.In.waiting(); n > window+bound {
			t.Fatalf("%d bytes wait", n)
		}
	})
}
