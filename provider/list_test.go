package provider

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/testseed"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"golang.org/x/sys/unix"
)

// listModel is two regions of one owner, local memory, and what they should hold.
type listModel struct {
	remote, want [2][]byte
	to           [2]*Remote
	local, mine  []byte
}

const listModelSize = 1 << 19

func newListModel(x, y *side, r *rand.Rand) *listModel {
	m := &listModel{local: make([]byte, listModelSize), mine: make([]byte, listModelSize)}
	for i := range m.local {
		m.local[i] = byte(r.Uint32())
	}
	copy(m.mine, m.local)
	for i := range m.remote {
		m.remote[i], m.want[i] = make([]byte, listModelSize), make([]byte, listModelSize)
		m.to[i] = x.opens(y.token(y.region(m.remote[i], uint64(7+i), fi.RemoteRead|fi.RemoteWrite)))
	}
	return m
}

// pieces are random pieces, whose elements lie apart from each other on either side, so that no order among
// them matters.
func (m *listModel) pieces(r *rand.Rand, most int) (pieces []Piece) {
	here, there := 0, [2]int{}
	for len(pieces) < 1+r.IntN(most) {
		n, count, k := r.IntN([...]int{9, 300, 20000}[r.IntN(3)]), 1+r.IntN(4)*r.IntN(2), r.IntN(2)
		left, right := n+r.IntN(30)*r.IntN(2), n+r.IntN(30)*r.IntN(2)
		if here+count*left > listModelSize || there[k]+count*right > listModelSize {
			break
		}
		pieces = append(pieces, Piece{
			Local: uintptr(unsafe.Pointer(&m.local[0])) + uintptr(here), LocalStride: uint64(left), Remote: m.to[k],
			Addr:         uint64(there[k]),
			RemoteStride: uint64(right), Len: uint64(n), Count: uint64(count),
		})
		here += count * left
		there[k] += count * right
	}
	return pieces
}

// apply does to the model what the elements of pieces do.
func (m *listModel) apply(pieces []Piece, picks map[int]bool, read bool) (n int, total uint64) {
	i := 0
	for _, p := range pieces {
		for c := range p.Count {
			if picks == nil || picks[i] {
				at := uint64(p.Local-uintptr(unsafe.Pointer(&m.local[0]))) + c*p.LocalStride
				from := p.Addr + c*p.RemoteStride
				k := slices.Index(m.to[:], p.Remote)
				if read {
					copy(m.mine[at:at+p.Len], m.want[k][from:from+p.Len])
				} else {
					copy(m.want[k][from:from+p.Len], m.mine[at:at+p.Len])
				}
				n++
				total += p.Len
			}
			i++
		}
	}
	return n, total
}

func (m *listModel) compare(t *testing.T, what string) {
	t.Helper()
	for k := range m.remote {
		if !bytes.Equal(m.remote[k], m.want[k]) {
			t.Fatalf("%s: region %d differs from the model", what, k)
		}
	}
	if !bytes.Equal(m.local, m.mine) {
		t.Fatalf("%s: local memory differs from the model", what)
	}
}

// TestListAgainstModel posts random lists, whole and by picks, and compares memory with a model.
func TestListAgainstModel(t *testing.T) {
	listPaths(t, func(t *testing.T, x, y *side, way Way) {
		elements, total := listsAgainstModel(t, x, y, 12, false)
		wantWay(t, x, way, elements, total)
	})
}

// listsAgainstModel has x post that many random lists to memory of y, three times each, and compares all memory with a
// model after each post. It returns how many elements and bytes were moved. noted: each post has a notification, which
// comes once, in order, after the data.
func listsAgainstModel(t *testing.T, x, y *side, lists int, noted bool) (elements, total uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	m := newListModel(x, y, r)
	posts := uint64(0)
	for n := range lists {
		pieces := m.pieces(r, [...]int{3, 100, 3000}[n%3])
		if len(pieces) < 2 {
			continue
		}
		l := x.list(pieces)
		for range 3 {
			a := ListArgs{Read: r.IntN(2) == 0, Context: uint64(n) + 1}
			a.Flags = []uint64{0, fi.DeliveryComplete}[r.IntN(2)]
			picks := randomPicks(r, l.Len(), &a)
			if noted {
				a.Note = binary.LittleEndian.AppendUint64(nil, posts)
			}
			post(t, func() error { return l.Post(&a) }, x, y)
			wantDone(t, x, y, a.Context, fi.RMA|map[bool]uint64{true: fi.Read, false: fi.Write}[a.Read])
			if noted {
				if got := y.takes(1, x)[0]; !bytes.Equal(got.Data, a.Note) {
					t.Fatalf("notification %x, want %x", got.Data, a.Note)
				}
			}
			posts++
			k, b := m.apply(pieces, picks, a.Read)
			m.compare(t, fmt.Sprintf("list %d of %d pieces, read %t, %d picks", n, len(pieces), a.Read, len(picks)))
			elements, total = elements+uint64(k), total+b
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return elements, total
}

// wantWay finds that elements have taken a way and no other.
func wantWay(t *testing.T, x *side, way Way, elements, total uint64) {
	t.Helper()
	for w := range ways {
		n, b := x.counts("list_"+w.String()), x.counts("list_"+w.String()+"_bytes")
		want := [2]uint64{elements, total}
		if w != way {
			want = [2]uint64{}
		}
		if n != want[0] || b != want[1] {
			t.Errorf("%d elements of %d bytes took %v, want %d of %d", n, b, w, want[0], want[1])
		}
	}
}

// randomPicks sets picks, bits or neither, and returns the elements; nil: all.
func randomPicks(r *rand.Rand, n int, a *ListArgs) map[int]bool {
	how := r.IntN(3)
	if how == 0 {
		return nil
	}
	picks := map[int]bool{}
	for i := range n {
		if r.IntN(3) == 0 {
			picks[i] = true
			a.Picks = append(a.Picks, uint32(i))
		}
	}
	if len(picks) < 2 { // one by itself is counted as the operation that it is
		a.Picks = nil
		return nil
	}
	r.Shuffle(len(a.Picks), func(i, j int) { a.Picks[i], a.Picks[j] = a.Picks[j], a.Picks[i] })
	if how == 1 {
		a.Bits, a.Picks = make([]uint64, (n+63)/64), nil
		for i := range picks {
			a.Bits[i/64] |= 1 << (i % 64)
		}
	}
	return picks
}

// TestListFails closes a region of which some elements of a list are. The operation ends with the first of them.
func TestListFails(t *testing.T) {
	listPaths(t, func(t *testing.T, x, y *side, way Way) {
		const count, size = 2000, 64
		local, good, gone := bytes.Repeat([]byte{1}, count*size), make([]byte, count*size), make([]byte, size)
		to := x.opens(y.token(y.region(good, 7, fi.RemoteWrite)))
		m := y.region(gone, 8, fi.RemoteWrite)
		bad := x.opens(y.token(m))
		var pieces []Piece
		for i := range count {
			p := Piece{Local: iovOf(local)[0].Base + uintptr(i*size), Remote: to, Addr: uint64(i * size), Len: size}
			if i == 700 || i == 1500 {
				p.Remote, p.Addr = bad, 0
			}
			pieces = append(pieces, p)
		}
		l := x.list(pieces)
		post(t, func() error { return l.Write(1) }, x, y)
		wantDone(t, x, y, 1, fi.RMA|fi.Write)
		clear(good)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		post(t, func() error { return l.Write(2) }, x, y)
		_, e, done := settle(t, x, y)
		if done || e.Err != fi.ENOKEY || e.Context != 2 || e.Data != 700 || e.Len > (count-2)*size ||
			e.Flags&fi.Write == 0 {
			t.Fatalf("done %t, %+v", done, e)
		}
		if way == WayIPC && e.Len < 700*size {
			t.Errorf("%d bytes are known to be done", e.Len)
		}
		if got := uint64(bytes.Count(good, []byte{1})); got < e.Len {
			t.Errorf("%d bytes are there, said %d", got, e.Len)
		}
		if gone[0] != 1 {
			t.Error("what the first post wrote is not there")
		}
	})
}

// TestListNoWay turns off what leads to a peer.
func TestListNoWay(t *testing.T) {
	for _, w := range []config.Ways{{RDMA: true}, {IPC: true}} {
		b := newBench(t, func(c *config.Config) { c.TokenWays = w; c.UseCMA = config.No }, rmaHints())
		x, y := b.side(t), b.side(t)
		memory := make([]byte, 64)
		to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
		if i := to.Info(); i.Why[WayMessage] != tokens.TurnedOff {
			t.Errorf("%+v", i)
		}
		l := x.list([]Piece{{Local: iovOf(memory)[0].Base, Remote: to, Len: 8, LocalStride: 8, RemoteStride: 16,
			Count: 3}})
		post(t, func() error { return l.Write(1) }, x, y)
		if _, e, done := settle(t, x, y); done || e.Err != fi.EOPNOTSUPP || e.Data != 0 || e.Len != 0 {
			t.Errorf("done %t, %+v", done, e)
		}
	}
}

// TestListDevice mixes memory of this process and of a dma-buf, here and there: nothing goes through a bounce buffer.
func TestListDevice(t *testing.T) {
	defer dmabuf.Pretend()()
	b := newBench(t, nil, hmemHints())
	x, y := b.side(t), b.side(t)
	here, there := x.dmabuf(t, 5), y.dmabuf(t, 6)
	host, memory := bytes.Repeat([]byte{3}, 4096), make([]byte, 4096)
	to := [2]*Remote{x.opens(y.token(y.region(memory, 7, fi.RemoteWrite|fi.RemoteRead))), x.opens(y.token(there.mr))}
	from := [2]uintptr{iovOf(host)[0].Base, here.iov(t, 0, 4096)[0].Base}
	here.put(t, 0, bytes.Repeat([]byte{4}, 4096))
	var pieces []Piece
	for i := range 64 {
		p := Piece{Local: from[i%2] + uintptr(i*64), Remote: to[i/2%2], Addr: uint64(i * 64), Len: 64}
		p.Addr += p.Remote.Info().Base
		pieces = append(pieces, p)
	}
	l := x.list(pieces)
	post(t, func() error { return l.Write(1) }, x, y)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	for i := range 64 {
		want := bytes.Repeat([]byte{byte(3 + i%2)}, 64)
		if i/2%2 == 1 {
			there.want(t, i*64, want)
		} else if !bytes.Equal(memory[i*64:i*64+64], want) {
			t.Fatalf("element %d is wrong", i)
		}
	}
	if n, m := x.counts("list_ipc"), x.counts("list_message"); n != 64 || m != 0 {
		t.Errorf("%d elements were copied, %d went as messages", n, m)
	}
}

func TestListRefused(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y, z := b.side(t), b.side(t), b.side(t)
	memory := make([]byte, 4096)
	local := iovOf(memory)[0].Base
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	read := x.opens(y.token(y.region(memory, 8, fi.RemoteRead)))
	other := x.opens(z.token(z.region(memory, 9, fi.RemoteWrite)))
	foreign := z.opens(y.token(y.region(memory, 10, fi.RemoteWrite)))
	closed := x.opens(y.token(y.region(memory, 11, fi.RemoteWrite)))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		pieces []Piece
		want   fi.Errno
	}{
		{"nothing", nil, fi.EINVAL},
		{"nowhere", []Piece{{Local: local, Len: 8}}, fi.EINVAL},
		{"from nowhere", []Piece{{Remote: to, Len: 8}}, fi.EINVAL},
		{"several owners", []Piece{{Local: local, Remote: to, Len: 8}, {Local: local, Remote: other, Len: 8}},
			fi.EINVAL},
		{"another endpoint's", []Piece{{Local: local, Remote: foreign, Len: 8}}, fi.EDOMAIN},
		{"a closed one", []Piece{{Local: local, Remote: closed, Len: 8}}, fi.EBADF},
		{"beyond", []Piece{{Local: local, Remote: to, Addr: 4090, Len: 8}}, fi.EACCES},
		{"far beyond", []Piece{{Local: local, Remote: to, Addr: 1 << 50, Len: 8}}, fi.EACCES},
		{"the last beyond", []Piece{{Local: local, Remote: to, Len: 8, RemoteStride: 100, Count: 42}}, fi.EACCES},
		{"there wraps", []Piece{{Local: local, Remote: to, Len: 8, RemoteStride: 1 << 62, Count: 6}}, fi.EACCES},
		{"address wraps", []Piece{{Local: local, Remote: to, Addr: 1<<64 - 4, Len: 8}}, fi.EACCES},
		{"here wraps", []Piece{{Local: 1<<64 - 4, Remote: to, Len: 8}}, fi.EINVAL},
		{"strides wrap here", []Piece{{Local: local, LocalStride: 1 << 61, Remote: to, Len: 8, Count: 9}}, fi.EINVAL},
		{"too long", []Piece{{Local: local, Remote: to, Len: 1 << 50}}, fi.EMSGSIZE},
		{"too many", []Piece{{Local: local, Remote: to, Len: 0, Count: MaxElements}, {Local: local, Remote: to}},
			fi.EINVAL},
		{"very many", []Piece{{Local: local, Remote: to, Len: 1, Count: 1<<64 - 1}}, fi.EINVAL},
	} {
		l, err := x.ep.NewList(c.pieces)
		wantErrno(t, err, c.want, c.what)
		if err == nil {
			l.Close()
		}
	}
	l := x.list([]Piece{{Local: local, Remote: to, Len: 8, Count: 4}})
	mixed := x.list([]Piece{{Local: local, Remote: to, Len: 8}, {Local: local, Remote: read, Len: 8}})
	for _, c := range []struct {
		what string
		l    *List
		a    ListArgs
		want fi.Errno
	}{
		{"inject", l, ListArgs{Flags: fi.Inject}, fi.EBADFLAGS},
		{"data", l, ListArgs{Flags: fi.RemoteCQData}, fi.EBADFLAGS},
		{"a read of what is for writing", l, ListArgs{Read: true}, fi.EACCES},
		{"a write of what is for reading", mixed, ListArgs{}, fi.EACCES},
		{"no elements", l, ListArgs{Picks: []uint32{}}, fi.EINVAL},
		{"no bits", l, ListArgs{Bits: []uint64{0}}, fi.EINVAL},
		{"an element that is not there", l, ListArgs{Picks: []uint32{3, 4}}, fi.EINVAL},
		{"a bit that is not there", l, ListArgs{Bits: []uint64{1 << 40}}, fi.EINVAL},
	} {
		wantErrno(t, c.l.Post(&c.a), c.want, c.what)
	}
	wantErrno(t, to.Close(), fi.EBUSY, "close a region that a list uses")
	lines := logtest.Capture(t, log.Info)
	_, _ = x.ep.NewList([]Piece{{Local: local, Remote: to, Len: 8}, {Local: local, Remote: other, Len: 8}})
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "several owners") {
		t.Errorf("logged %q", got)
	}
}

// TestListStrides shows that elements at regular distances take no memory each.
func TestListStrides(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	const count = 1 << 20
	memory, local := make([]byte, 2*count), make([]byte, count)
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	for i := range local {
		local[i] = byte(i)
	}
	l := x.list([]Piece{{Local: iovOf(local)[0].Base, Remote: to, Len: 1, RemoteStride: 2, Count: count}})
	bytes := unsafe.Sizeof(*l) + uintptr(cap(l.Shape().Runs))*unsafe.Sizeof(dataplane.Run{})
	if bytes > 4096 || l.Len() != count {
		t.Errorf("a list of %d elements takes %d bytes", l.Len(), bytes)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 { // also what they leave to the collector
		_ = x.list([]Piece{{Local: iovOf(local)[0].Base, Remote: to, Len: 1, RemoteStride: 2, Count: count}})
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 100*4096 {
		t.Errorf("%d bytes are allocated for a list", (after.TotalAlloc-before.TotalAlloc)/100)
	}
	post(t, func() error { return l.Write(1) }, x, y)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	for i := range local {
		if memory[2*i] != local[i] || memory[2*i+1] != 0 {
			t.Fatalf("element %d is wrong", i)
		}
	}
	var one []Piece
	for i := range 1000 {
		one = append(one, Piece{Local: iovOf(local)[0].Base + uintptr(8*i), Remote: to, Addr: uint64(16 * i), Len: 8})
	}
	if l := x.list(one); len(l.Shape().Runs) != 1 || l.Len() != 1000 {
		t.Errorf("%d runs of %d elements", len(l.Shape().Runs), l.Len())
	}
}

// TestListCanceled takes back a post whose peer takes nothing in.
func TestListCanceled(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.UseCMA = config.No }, rmaHints())
	x, y := b.side(t), b.side(t)
	memory := make([]byte, 1<<20)
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	l := x.list([]Piece{{Local: iovOf(memory)[0].Base, Remote: to, Len: 64, RemoteStride: 128, Count: 4096}})
	post(t, func() error { return l.Write(77) }, x, y)
	for range 100 {
		x.ep.Progress()
	}
	if err := x.ep.Cancel(77); err != nil {
		t.Fatal(err)
	}
	if _, e, done := settle(t, x, y); done || e.Err != fi.ECANCELED || e.Context != 77 || e.Len >= 4096*64 ||
		e.Data == 0 {
		t.Errorf("done %t, %+v", done, e)
	}
	if err := l.Close(); err != nil {
		t.Errorf("close after the end: %v", err)
	}
}

// TestListClosed closes a list that is under way: its post ends as canceled when its owner goes on, or without a
// completion when the endpoint closes.
func TestListClosed(t *testing.T) {
	for _, resumed := range []bool{true, false} {
		listPaths(t, func(t *testing.T, x, y *side, way Way) {
			if way != WayMessage {
				return
			}
			memory := make([]byte, 16<<20) // more than is under way at a time
			to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
			piece := Piece{Local: iovOf(memory)[0].Base, Remote: to, Len: 2048, RemoteStride: 4096, Count: 4096}
			l, err := x.ep.NewList([]Piece{piece})
			if err != nil {
				t.Fatal(err)
			}
			post(t, func() error { return l.Write(77) }, x, y)
			x.ep.Progress()
			wantErrno(t, to.Close(), fi.EBUSY, "close a region that a list uses")
			if err := l.Close(); err != nil {
				t.Errorf("close a list that is under way: %v", err)
			}
			wantErrno(t, l.Close(), fi.EBADF, "close it again")
			wantErrno(t, l.Write(78), fi.EBADF, "post it")
			if !resumed {
				return // the bench closes the endpoint
			}
			if _, e, done := settle(t, x, y); done || e.Err != fi.ECANCELED || e.Context != 77 {
				t.Errorf("done %t, %+v", done, e)
			}
		})
	}
}

// TestListWithoutMemory refuses the first list whose batches find no memory, and prepares one when there is some again.
func TestListWithoutMemory(t *testing.T) {
	bench := newBench(t, nil, rmaHints())
	x, y := bench.side(t), bench.side(t)
	x.know(y)
	y.know(x)
	memory := make([]byte, 4096)
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	pieces := []Piece{{Local: iovOf(memory)[0].Base, Remote: to, Len: 8, LocalStride: 16, RemoteStride: 16, Count: 8}}
	restore := mem.InjectFaults(func(int) error { return unix.ENOMEM })
	_, err := x.ep.NewList(pieces)
	restore()
	wantErrno(t, err, fi.ENOMEM, "a list without memory for its batches")
	l := x.list(pieces)
	post(t, func() error { return l.Write(5) }, x, y)
	if got, e, done := settle(t, x, y); !done || got.Context != 5 {
		t.Errorf("%+v, %+v", got, e)
	}
}

// TestListPeerGone ends the owner while a list is under way.
func TestListPeerGone(t *testing.T) {
	for name, use := range map[string]config.Tri{"memory": config.Auto, "messages": config.No} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *config.Config) { c.UseCMA = use }, rmaHints())
			x, y := b.side(t), b.side(t)
			memory := make([]byte, 1<<20)
			to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
			l := x.list([]Piece{{Local: iovOf(memory)[0].Base, Remote: to, Len: 64, RemoteStride: 128, Count: 4096}})
			post(t, func() error { return l.Write(1) }, x, y)
			y.close()
			if use == config.No {
				if _, e, done := settle(t, x); done || e.Err != fi.ECONNRESET {
					t.Errorf("done %t, %+v", done, e)
				}
			} else {
				wantDone(t, x, x, 1, fi.RMA|fi.Write)
			}
			for end := time.Now().Add(time.Minute); ; x.ep.Progress() {
				err := l.Write(2)
				if err == nil {
					if _, e, done := settle(t, x); done {
						t.Error("written to nothing")
					} else if e.Err != fi.ECONNRESET {
						t.Errorf("%+v", e)
					}
					break
				}
				if fi.ErrnoOf(err) == fi.ECONNRESET || fi.ErrnoOf(err) == fi.EHOSTUNREACH {
					break
				}
				if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestListThreads has several threads open, post and close at once.
func TestListThreads(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.side(t), b.side(t)
		memory := make([]byte, 4<<16)
		tok := y.token(y.region(memory, 7, fi.RemoteWrite))
		var stop sync.WaitGroup
		var posted [4]int
		var ended [4]atomic.Int32
		poll := func() {
			x.ep.Progress()
			y.ep.Progress()
			var got [1]cq.Entry
			if k, err := x.cq.Read(got[:]); k == 1 {
				ended[got[0].Context].Add(1)
			} else if err != nil && !errors.Is(err, fi.EAGAIN) {
				t.Error(err)
			}
		}
		for n := range posted {
			stop.Go(func() {
				local := bytes.Repeat([]byte{byte(n + 1)}, 1<<16)
				for range 20 {
					r, err := x.ep.OpenToken(tok)
					if err != nil {
						t.Error(err)
						return
					}
					l, err := x.ep.NewList([]Piece{{Local: iovOf(local)[0].Base, Remote: r, Addr: uint64(n) << 16,
						Len: 100, LocalStride: 160, RemoteStride: 160, Count: 400}})
					if err != nil {
						t.Error(err)
						return
					}
					for err = l.Write(uint64(n)); errors.Is(err, fi.EAGAIN); err = l.Write(uint64(n)) {
						poll()
					}
					if err != nil {
						t.Error(err)
						return
					}
					posted[n]++
					for int(ended[n].Load()) < posted[n] {
						poll()
						runtime.Gosched()
					}
					if err := l.Close(); err != nil {
						t.Error(err)
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}
				runtime.KeepAlive(local)
			})
		}
		stop.Wait()
		for n := range posted {
			if k := ended[n].Load(); k != 20 {
				t.Errorf("thread %d: %d completions of 20 posts", n, k)
			}
			for i := range 400 {
				if memory[n<<16+i*160] != byte(n+1) {
					t.Fatalf("thread %d, element %d", n, i)
				}
			}
		}
	})
}
