package list

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/slots"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// of prepares a list, until the test ends.
func (h *host) of(list ...Piece) *List {
	h.t.Helper()
	l, err := h.posts.New(len(list), func(i int, p *Piece) error {
		*p = list[i]
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	return l
}

// strided are count elements of n bytes in a region, with gaps.
func strided(r *region, n, count uint64) Piece {
	return Piece{
		Local: hostBase, LocalStride: 2 * n, Region: r, Addr: regionBase, RemoteStride: 3 * n, Len: n, Count: count,
	}
}

// TestRefused prepares what is no list. It uses nothing afterwards, as newHost finds.
func TestRefused(t *testing.T) {
	h := newHost(t, 1)
	host, device := h.region(1, 1<<12, false), h.region(2, 1<<12, true)
	other, gone := h.region(3, 1<<12, false), h.region(4, 1<<12, false)
	other.about.Addr, gone.closed = 8, true
	good := Piece{Local: hostBase, Region: host, Addr: regionBase, Len: 8}
	change := func(f func(p *Piece)) Piece {
		p := good
		f(&p)
		return p
	}
	for what, c := range map[string]struct {
		list []Piece
		want fi.Errno
	}{
		"nothing":           {nil, fi.EINVAL},
		"no region":         {[]Piece{good, change(func(p *Piece) { p.Region = nil })}, fi.EINVAL},
		"several owners":    {[]Piece{good, change(func(p *Piece) { p.Region = other })}, fi.EINVAL},
		"a closed region":   {[]Piece{good, change(func(p *Piece) { p.Region = gone })}, fi.EBADF},
		"no memory":         {[]Piece{good, change(func(p *Piece) { p.Local = 0 })}, fi.EINVAL},
		"before the region": {[]Piece{good, change(func(p *Piece) { p.Addr-- })}, fi.EACCES},
		"beyond it":         {[]Piece{good, change(func(p *Piece) { p.Region, p.Len = device, 1<<12+1 })}, fi.EACCES},
		"long":              {[]Piece{good, change(func(p *Piece) { p.Len = wire.MaxMessage + 1 })}, fi.EMSGSIZE},
		"many":              {[]Piece{good, change(func(p *Piece) { p.Count = dataplane.MaxElements })}, fi.EINVAL},
	} {
		_, err := h.posts.New(len(c.list), func(i int, p *Piece) error {
			*p = c.list[i]
			return nil
		})
		want(t, err, c.want, "%s", what)
	}
	put := func(_ int, p *Piece) error {
		*p = strided(host, 8, 3)
		return nil
	}
	_, err := h.posts.New(2, func(int, *Piece) error { return fi.EFAULT })
	want(t, err, fi.EFAULT, "an error of the caller's")
	restore := mem.InjectFaults(func(int) error { return fi.ENOMEM })
	_, err = h.posts.New(1, put)
	restore()
	want(t, err, fi.ENOMEM, "no memory for batches")
	h.closed = true
	_, err = h.posts.New(1, put)
	want(t, err, fi.EBADF, "a closed endpoint")
	h.closed = false
}

// TestPostRefused posts what is no post, which ends with an error and without a completion.
func TestPostRefused(t *testing.T) {
	h := newHost(t, 1)
	r := h.region(1, 1<<12, false)
	r.about.Write = false
	l := h.of(strided(r, 8, 5))
	for what, c := range map[string]struct {
		a    Args
		want fi.Errno
	}{
		"flags":           {Args{Read: true, Flags: fi.Inject}, fi.EBADFLAGS},
		"no right":        {Args{}, fi.EACCES},
		"no pick":         {Args{Read: true, Picks: []uint32{}}, fi.EINVAL},
		"no bit":          {Args{Read: true, Bits: []uint64{0}}, fi.EINVAL},
		"no such pick":    {Args{Read: true, Picks: []uint32{1, 5}}, fi.EINVAL},
		"no such bit":     {Args{Read: true, Bits: []uint64{1 << 5}}, fi.EINVAL},
		"too many picks":  {Args{Read: true, Picks: make([]uint32, dataplane.MaxElements+1)}, fi.EINVAL},
		"a note too long": {Args{Read: true, Note: make([]byte, note.Longest+1)}, fi.EMSGSIZE},
	} {
		want(t, l.Post(&c.a), c.want, "%s", what)
	}
	h.closed = true
	want(t, l.Read(1), fi.EOPBADSTATE, "an endpoint that is not enabled")
	h.closed, h.gone = false, true
	want(t, l.Read(1), fi.ECONNRESET, "a peer that is gone")
	h.gone = false
	want(t, l.Close(), fi.Success, "close")
	want(t, l.Read(1), fi.EBADF, "a closed list")
	want(t, l.Close(), fi.EBADF, "close again")
	if len(h.ended) != 0 || l.posts.Load() != 0 {
		t.Errorf("completions %v, %d posts", h.ended, l.posts.Load())
	}
}

// TestPostCounts has a post counted from its begin, so that Close beside it keeps the elements that it reads.
func TestPostCounts(t *testing.T) {
	h := newHost(t, 1)
	l := h.of(strided(h.region(1, 1<<12, false), 8, 8))
	counted := int64(0)
	log.SetSink(func(log.Level, log.Subsys, string) { counted = max(counted, l.posts.Load()) })
	log.SetEnabled(func(log.Level, log.Subsys) bool { return true })
	t.Cleanup(func() {
		log.SetSink(nil)
		log.SetEnabled(func(log.Level, log.Subsys) bool { return false })
	})
	want(t, l.Post(&Args{Picks: []uint32{8}}), fi.EINVAL, "an element that the list does not have")
	if counted != 1 || l.posts.Load() != 0 {
		t.Errorf("%d posts while its elements are checked, then %d", counted, l.posts.Load())
	}
}

// TestNoneCopied posts a list that has nothing for the posting thread, over a path by which it can copy no more: the
// transport is given no empty batch, of which it would be asked where it stopped.
func TestNoneCopied(t *testing.T) {
	h := newHost(t, 1)
	h.path.copies, h.faults = true, 1
	r := h.region(2, 1<<12, true)
	l := h.of(strided(r, 8, 5))
	r.means = ByMessage
	want(t, l.Post(&Args{Picks: []uint32{4, 0, 1}}), fi.Success, "post")
	h.rest()
	h.faults = 0
	h.settle()
	if len(h.ended) != 1 || h.ended[0].status != fi.Success {
		t.Errorf("completions %+v", h.ended)
	}
}

// stopping is a path whose copies stop behind so many bytes.
type stopping struct {
	*path
	after uint64
}

func (s stopping) Mover() hw.PieceMover { return s }

func (s stopping) MovePieces(*hw.Pieces, bool) (uint64, error) { return s.after, hw.ErrPermission }

// TestKnownDone has a copy stop in the middle of an element, which then fails as a message: the bytes of that element
// are not among those that are done.
func TestKnownDone(t *testing.T) {
	for _, after := range []uint64{0, 99, 100, 250, 399} {
		h := newHost(t, 1)
		l := h.of(strided(h.region(1, 1<<12, false), 100, 4))
		op := &Op{list: l, sel: l.all(), total: l.Bytes()}
		op.first.Store(noFailure)
		l.posts.Add(1)
		want(t, op.move(&op.sel, peer{h}, stopping{h.path, after}), fi.Success, "post")
		h.gone = true
		h.settle()
		h.gone = false
		if e := h.ended[0]; len(h.ended) != 1 || e.status != fi.ECONNRESET || e.Data != after/100 ||
			e.Len != after/100*100 {
			t.Errorf("behind %d bytes: %+v", after, h.ended)
		}
	}
}

// TestTogetherEnded ends requests of several elements at each of these: those before are done.
func TestTogetherEnded(t *testing.T) {
	for at := range uint64(5) {
		for _, read := range []bool{false, true} {
			h := newHost(t, 1)
			l := h.of(strided(h.region(1, 1<<12, false), 100, 5))
			op := &Op{list: l, args: Args{Read: read}, sel: l.all(), total: l.Bytes(), to: peer{h}}
			op.first.Store(noFailure)
			l.posts.Add(1)
			want(t, op.begin(), fi.Success, "begin")
			op.pending.Store(1)
			end := Together{Work: op.work(0), Total: 500, Count: 5, Read: read, Failed: at}
			if read {
				end.Failed = 100*at + at // the byte
			}
			h.entered = nil
			h.posts.TogetherEnded(end, fi.EACCES)
			if e := h.ended[0]; len(h.ended) != 1 || e.status != fi.EACCES || e.Data != at || e.Len != 100*at {
				t.Errorf("element %d, read %t: %+v", at, read, h.ended)
			}
		}
	}
}

// TestNoSlot posts while as many operations as possible are under way: nothing has happened, or if some elements are
// copied the post ends with an error.
func TestNoSlot(t *testing.T) {
	h := newHost(t, 1)
	r, far := h.region(1, 1<<12, false), h.region(2, 1<<12, true)
	far.maps = false
	l := h.of(strided(r, 8, 5))
	other := new(Op)
	for range slots.Max {
		h.posts.under.Take(other)
	}
	want(t, l.Write(1), fi.EAGAIN, "post of messages")
	if len(h.ended)+len(h.entered) != 0 {
		t.Errorf("completions %+v", h.ended)
	}
	h.path.copies = true
	mixed := Piece{Local: hostBase + 1<<10, Region: far, Addr: regionBase, Len: 8, Count: 2}
	want(t, h.of(strided(r, 8, 5), mixed).Write(2), fi.Success, "post of which some is copied")
	if e := h.ended[0]; len(h.ended) != 1 || e.status != fi.ENOMEM || e.Data != 5 || e.Len != 40 {
		t.Errorf("completions %+v", h.ended)
	}
}

// TestPieces has a device move elements that end with an error, or do not end: those that it refuses go as messages
// when the others have ended, unless the post is canceled or has failed by then.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		what     string
		refusals int
		gone     bool // before some have ended
		cancel   bool // likewise
		closed   bool // likewise
		read     bool
		status   fi.Errno
	}{
		{what: "moved"},
		{what: "read", read: true},
		{what: "refused", refusals: 1},
		{what: "lost", gone: true, status: fi.ECONNRESET},
		{what: "canceled", cancel: true, status: fi.ECANCELED},
		{what: "refused and canceled", refusals: 1, cancel: true, status: fi.ECANCELED},
		{what: "closed", closed: true},
	} {
		h := newHost(t, 1)
		d := &standIn{knows: true}
		h.path.rdma = d
		l := h.of(strided(h.region(1, 1<<16, false), 8, 1000))
		want(t, l.Post(&Args{Context: 1, Read: c.read}), fi.Success, "post")
		for len(h.flying) == 0 {
			h.step()
		}
		if !h.posts.Moving() {
			t.Errorf("%s: nothing moves", c.what)
		}
		h.refusals, h.gone, h.closed = c.refusals, c.gone, c.closed
		if c.cancel {
			h.posts.Cancel(1)
		}
		if c.closed {
			for _, end := range h.flying {
				end()
			}
			h.flying, h.entered = nil, nil
			h.posts.Unregister()
			h.inFlight = 0
			if len(h.ended) != 0 || d.left != 1 {
				t.Errorf("%s: completions %+v, left %d", c.what, h.ended, d.left)
			}
			continue
		}
		h.settle()
		if h.posts.Moving() {
			t.Errorf("%s: something moves at the end", c.what)
		}
		if len(h.ended) != 1 || h.ended[0].status != c.status || d.used != 1 || d.left != 1 {
			t.Errorf("%s: completions %+v, %+v", c.what, h.ended, d)
		}
		n := h.counts
		if c.status == fi.Success && (n[WayRDMA]+n[WayMessage] != 1000 || (n[WayMessage] != 0) != (c.refusals != 0)) {
			t.Errorf("%s: %v elements by their ways", c.what, n)
		}
	}
}

// TestMisplaced: a flush that fails after an element was refused leaves of no element of the post known that it is in
// its place.
func TestMisplaced(t *testing.T) {
	h := newHost(t, 1)
	h.path.rdma, h.delivers = &standIn{knows: true}, true
	l := h.of(strided(h.region(1, 1<<16, false), 8, 100))
	picks := []uint32{9, 4, 7}
	for n := uint32(10); n < 100; n++ {
		picks = append(picks, n)
	}
	want(t, l.Post(&Args{Flags: fi.DeliveryComplete, Picks: picks}), fi.Success, "post")
	pump := func() {
		if op := h.entered[0]; op.Pump() {
			h.entered = nil
		}
	}
	pump()
	for i, end := range h.flying {
		if h.refusals = 0; i == 2 {
			h.refusals = 1
		}
		end()
	}
	h.flying, h.refusals = nil, 0
	pump() // the refused one as a message
	if len(h.flying) != 1 || h.counts[WayMessage] != 1 {
		t.Fatalf("%d operations, %v", len(h.flying), h.counts)
	}
	end := h.flying[0]
	h.flying = nil
	h.lost = true
	end()
	h.settle()
	if len(h.ended) != 1 || h.ended[0].status != fi.ECONNRESET || h.ended[0].Data != 4 || h.ended[0].Len != 0 {
		t.Errorf("completions %+v", h.ended)
	}
}

// TestKeySought: for elements of a region whose key is not known the device's is searched for once each time that
// elements are posted.
func TestKeySought(t *testing.T) {
	h := newHost(t, 1)
	h.path.rdma, h.path.denied[1] = &standIn{knows: true}, true
	l := h.of(strided(h.region(1, 1<<16, false), 8, 200))
	want(t, l.Write(1), fi.Success, "post")
	if h.entered[0].Pump() {
		h.entered = nil
	}
	if n := h.counts[WayMessage]; h.keys != 1 || n != 200 {
		t.Errorf("%d searches, %d messages", h.keys, n)
	}
	h.settle()
}

// TestRest has no further elements begin, and waits for goroutines, for a time.
func TestRest(t *testing.T) {
	h := newHost(t, 1)
	l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
	want(t, l.Write(1), fi.Success, "post")
	stop := make(chan bool)
	h.posts.Go(func() { <-stop })
	if n := h.posts.Rest(time.Millisecond); n != 1 {
		t.Errorf("%d goroutines are at work", n)
	}
	close(stop)
	if n := h.posts.Rest(time.Minute); n != 0 {
		t.Errorf("%d goroutines are at work", n)
	}
	if op := h.entered[0]; !op.Of(&h.posts) || op.Of(&Posts{}) {
		t.Error("the operation is another endpoint's")
	}
	h.settle()
	if len(h.ended) != 1 || h.ended[0].status != fi.ECANCELED || h.ended[0].Len != 0 {
		t.Errorf("completions %+v", h.ended)
	}
}

// TestNoted ends posts of which the data plane has done the elements: with their notification, or an error if the peer
// is gone.
func TestNoted(t *testing.T) {
	h := newHost(t, 1)
	l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
	l.SetTag(77)
	l.Noted(&Args{Context: 1, Note: []byte("x"), Read: true}, 160)
	h.gone = true
	l.Noted(&Args{Context: 2, Note: []byte("x")}, 160)
	h.gone = false
	if len(h.ended) != 2 || h.ended[0].status != fi.Success || h.ended[1].status != fi.ECONNRESET ||
		h.ended[1].Len != 160 {
		t.Errorf("completions %+v", h.ended)
	}
	if len(h.noted) != 1 || h.noted[0].Tag != 77 || h.noted[0].Op != note.Read || l.posts.Load() != 0 {
		t.Errorf("notifications %+v, %d posts", h.noted, l.posts.Load())
	}
}

// plain is a read or write of an application.
type plain struct {
	h               *host
	full, refused   int // answers of fi.EAGAIN, and then of an error
	posted, noticed int
	ended           []fi.Errno
	copied          bool
}

func (p *plain) answer() error {
	switch {
	case p.full > 0:
		p.full--
		return fi.EAGAIN
	case p.refused > 0:
		return fi.EMSGSIZE
	}
	return nil
}

func (p *plain) Post(work uint64) error {
	err := p.answer()
	if err == nil {
		p.posted++
		p.h.flying = append(p.h.flying, func() { p.h.posts.Ended(work, fi.Success, 8) })
	}
	return err
}

func (p *plain) Notify(Peer) error {
	err := p.answer()
	if err == nil {
		p.noticed++
	}
	return err
}

func (p *plain) Complete(status fi.Errno, _, copied bool) {
	p.ended, p.copied = append(p.ended, status), copied
}

// TestPlain copies reads and writes whole, or posts them whole as messages.
func TestPlain(t *testing.T) {
	for _, c := range []struct {
		means                   Means
		full, refused           int
		want                    fi.Errno
		posted, noticed, faults int
	}{
		{means: ByCopy, full: 2, noticed: 1}, {means: ByMessage, full: 2, posted: 1},
		{means: ByCopy, refused: 1, want: fi.EMSGSIZE}, {means: ByMessage, full: 1, refused: 1, want: fi.EMSGSIZE},
		{means: ByNone, want: fi.EIO}, {means: ByCopy, faults: 1, want: fi.EIO},
	} {
		h := newHost(t, 1)
		r := h.region(2, 1<<12, true)
		r.means = c.means
		l, ok := h.posts.NewPlain([]Piece{strided(r, 8, 5)})
		if !ok {
			t.Fatal("no list")
		}
		o := &plain{h: h, full: c.full, refused: c.refused}
		h.faults = c.faults
		want(t, l.PostPlain(o, &Args{Context: 1}, true, peer{h}, h.path), fi.Success, "post")
		h.rest()
		h.faults = 0
		h.settle()
		if !slices.Equal(o.ended, []fi.Errno{c.want}) || o.posted != c.posted || o.noticed != c.noticed ||
			c.want == fi.Success && o.copied != (c.posted == 0) {
			t.Errorf("%+v: %+v", c, o)
		}
		r.uses = 0 // such a list is not closed
	}
	h := newHost(t, 1)
	host, far := h.region(1, 1<<12, false), h.region(2, 1<<12, true)
	far.maps = false
	for what, p := range map[string]Piece{
		"host memory": strided(host, 8, 1), "no mapping": strided(far, 8, 1), "beyond": strided(host, 1<<12, 2),
	} {
		if _, ok := h.posts.NewPlain([]Piece{p}); ok {
			t.Errorf("%s: a list", what)
		}
		host.uses, far.uses = 0, 0
	}
}
