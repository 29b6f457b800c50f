package loopback

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// words is another mapping of an interface's whole segment.
func words(t *testing.T, i *Iface) []uint64 {
	t.Helper()
	fd, err := unix.Open(i.seg.path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	m, err := mapFile(fd, i.seg.geo.bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.unmap)
	return unsafe.Slice((*uint64)(m.base), m.size/8)
}

// victim is a part of a segment that a hostile peer overwrites.
type victim struct {
	name       string
	begin, end uint64 // bytes
}

func targets(g *geometry) []victim {
	return []victim{
		{"header", 0, 192},
		{"state", 192, 256},
		{"rings", 256, 264},
		{"tails", g.ringOffset, g.ringOffset + 8},
		{"ring", g.ringOffset + ringHeader, g.ringOffset + ringBytes(g.ringLog2)},
		{"rings", g.ringOffset, g.ringOffset + hot.RxRings*ringBytes(g.ringLog2)},
		{"attach", g.attachOffset, g.attachOffset + uint64(g.attachCount)*attachBytes},
		{"bounce", g.bounceOffset, g.bounceOffset + uint64(g.bounceCount)*uint64(g.bounceStride)},
		{"all", 0, g.bytes},
	}
}

// value is a word as a hostile or broken peer might write it: mostly one that
// is almost right.
func value(r *rand.Rand, old uint64) uint64 {
	switch r.IntN(5) {
	case 0:
		return r.Uint64()
	case 1:
		return old ^ 1<<r.IntN(64)
	case 2:
		return old + 1<<r.IntN(64)
	case 3:
		return uint64(r.IntN(8)) | uint64(r.IntN(8))<<2 | uint64(r.IntN(4))<<hot.SeqLapShift
	}
	return uint64(r.IntN(3))
}

// TestCorruption overwrites parts of the segments of two interfaces while they
// exchange messages. Nothing may crash, hang, or give a handler more bytes
// than the limits; and when it stops, messages come through again.
func TestCorruption(t *testing.T) {
	c := Config{RingLog2: 4, AttachCount: 8, BounceCount: 4, BounceBytes: 256}.withDefaults()
	g := newGeometry(&c)
	for _, target := range targets(&g) {
		t.Run(target.name, func(t *testing.T) {
			c.Dir = shmDir(t)
			c.Logf = func(string, ...any) {}
			a, b := open(t, c), open(t, c)
			var stop atomic.Bool
			var wg sync.WaitGroup
			for _, victim := range []*Iface{a, b} {
				mem := words(t, victim)
				wg.Go(func() { scribble(mem[target.begin/8:target.end/8], &stop) })
			}
			for _, pair := range [][2]*Iface{{a, b}, {b, a}} {
				wg.Go(func() { chat(t, pair[0], pair[1], &stop) })
			}
			time.Sleep(200 * time.Millisecond)
			stop.Store(true)
			wg.Wait()
			for _, i := range []*Iface{a, b} {
				repair(i)
			}
			recovered(t, a, b, c, target.begin == 0)
			for _, i := range []*Iface{a, b} {
				i.Close()
				i.seg.remove()
			}
		})
	}
}

func scribble(mem []uint64, stop *atomic.Bool) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for !stop.Load() {
		for range 1 + r.IntN(4) {
			p := &mem[r.IntN(len(mem))]
			atomic.StoreUint64(p, value(r, atomic.LoadUint64(p)))
		}
		for range r.IntN(2000) {
			if stop.Load() {
				return
			}
		}
	}
}

// chat sends to the peer and receives, whatever happens.
func chat(t *testing.T, i, peer *Iface, stop *atomic.Bool) {
	limit := int(i.seg.geo.bounceBytes)
	total := 0
	i.SetHandler(1, func(_ hw.Source, _ uint64, head, p []byte) {
		if len(head) > hot.SlotBody || len(p) > limit {
			t.Errorf("handler got %d and %d bytes", len(head), len(p))
		}
		for _, b := range p { // touch all
			total += int(b)
		}
	})
	buf := make([]byte, limit)
	for n := 0; !stop.Load(); n++ {
		ep, err := i.Connect(peer.Address())
		if err == nil {
			for k := range 20 {
				_ = ep.AMShort(1, 0, buf[:k], buf[:k])
				_ = ep.AMBcopy(1, 0, nil, limit-k, func(d []byte) { copy(d, buf) }, 0)
				ep.EagerOpen()
				i.Progress(4)
			}
		}
		i.Progress(64)
		i.CheckPeers()
		i.Pending()
		i.Stats()
	}
}

// repair writes what nothing but the test can: the owner's words, which it
// writes once, and that the senders have left, which an overwritten attach
// entry of a live process does not say any more.
func repair(i *Iface) {
	h := i.seg.geo.header(&i.seg.id)
	h.RxState = hot.RxOpen
	h.RxRings = hot.RxRings
	*i.seg.header() = h
	for n := range i.seg.geo.attachCount {
		i.seg.attach(n).State = hot.AttachLeaving
	}
}

// recovered shows that new senders reach both interfaces. If headers were overwritten,
// a peer may have read in one that the owner had ended, and removed the file.
func recovered(t *testing.T, a, b *Iface, c Config, headers bool) {
	for _, i := range []*Iface{a, b} {
		if _, err := os.Stat(i.seg.path); headers && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		got := 0
		i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
		i.SetHandler(2, func(_ hw.Source, header uint64, _, p []byte) {
			if header == 0xfeed && string(p) == "through again" {
				got++
			}
		})
		newcomer := open(t, c)
		const want = 100
		sent := 0
		for end := time.Now().Add(hang); got < want; {
			if time.Now().After(end) {
				l := &i.rx.rings[0]
				owner, state, lapOK := l.ring.Load(l.head)
				t.Fatalf("%d of %d sent messages came; head %d, tail %d, its slot: owner %d state %d lap %v; %+v",
					got, sent, l.head, l.ring.Tail(), owner, state, lapOK, i.Stats())
			}
			ep, err := newcomer.Connect(i.Address())
			switch {
			case err == nil:
				if sent < want && ep.AMShort(2, 0xfeed, nil, []byte("through again")) == nil {
					sent++
				}
			case !errors.Is(err, hw.ErrNoResource):
				t.Fatal(err)
			}
			i.Progress(64)
			if sent == want || err != nil {
				i.CheckPeers()
			}
		}
	}
}
