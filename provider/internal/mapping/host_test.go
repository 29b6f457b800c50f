package mapping

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/token"
)

const (
	regionBytes = 64 << 10
	regionBase  = 1 << 40 // by which peers name the first byte
	incarnation = 77
	wait        = 10 * time.Second
)

// process is this process, which has a few regions of one domain.
type process struct {
	domain *Domain
	mu     sync.Mutex
	list   map[uint64]*own
}

// here is the process that answers in all tests: there is one descriptor thread.
var here = &process{}

func TestMain(m *testing.M) {
	Serve(here)
	os.Exit(m.Run())
}

// Region finds a region.
func (p *process) Region(of, key, rights uint64) (Own, proxy.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.list[key]
	switch {
	case r == nil || of != incarnation:
		return nil, proxy.StatusNone
	case r.rights&rights != rights || rights == 0:
		return nil, proxy.StatusRefused
	}
	r.entered++
	return r, proxy.StatusOK
}

// add adds a region, which the descriptor thread reads from then on.
func (p *process) add(key uint64, r own) *own {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.p = p
	p.list[key] = &r
	return &r
}

// left reports whether no gate is entered.
func (p *process) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.list {
		if r.entered != 0 {
			return false
		}
	}
	return true
}

// own is a region of the process.
type own struct {
	p       *process
	domain  *Domain // nil: the process's
	memory  hmem.Region
	rights  uint64
	entered int  // its gate; under mu
	hidden  bool // under mu
	buffer  uint64
}

func (r *own) Covers(addr, n uint64) bool {
	at := addr - regionBase
	return at <= regionBytes && n <= regionBytes-at
}

func (r *own) At(addr uint64) uint64 { return r.First() + (addr - regionBase) }
func (r *own) First() uint64         { return uint64(r.memory.Parts[0].Base) }
func (r *own) Buffer() uint64        { return r.buffer }

func (r *own) Domain() *Domain {
	if r.domain != nil {
		return r.domain
	}
	return r.p.domain
}

func (r *own) Hide() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.hidden = true
}

func (r *own) Leave() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.entered--
}

// left reports whether the gate is entered by none, and whether the region is hidden.
func (r *own) left() (left, hidden bool) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	return r.entered == 0, r.hidden
}

// remote is a region as a peer has it.
type remote struct {
	token token.Token
	own   bool
	why   string
}

func (r *remote) Token() *token.Token          { return &r.token }
func (r *remote) Process() (int, bool, string) { return os.Getpid(), r.own, r.why }
func (r *remote) About() list.About            { return list.About{Key: r.token.Key, Base: r.token.Base} }
func (r *remote) Maps(uint64) bool             { return true }
func (r *remote) Acquire() error               { return nil }
func (r *remote) Release()                     {}

// remoteOf is what a peer knows of all of a region.
func remoteOf(key uint64, kind token.Kind) *remote {
	t := token.Token{Incarnation: incarnation, Key: key, Base: regionBase, Length: regionBytes, Kind: kind}
	return &remote{token: t}
}

// open gives the process a domain with settings of its own, until the test ends, in which memory files are dma-bufs.
func open(t *testing.T, change func(c *config.Config)) *Domain {
	t.Helper()
	c := config.Default()
	if change != nil {
		change(c)
	}
	d := &Domain{}
	d.Init(here, c, true)
	here.mu.Lock()
	here.domain, here.list = d, map[uint64]*own{}
	here.mu.Unlock()
	undo := dmabuf.Pretend()
	t.Cleanup(func() {
		d.Leave()
		undo()
	})
	return d
}

// device is memory of a device, for which a memory file stands.
func device(t *testing.T) hmem.Region {
	t.Helper()
	fd, err := unix.MemfdCreate("weft-mapping-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 2*regionBytes); err != nil {
		t.Fatal(err)
	}
	m, err := hmem.EnterRegion(&fi.MRAttr{DMABuf: &fi.DMABuf{FD: fd, Offset: regionBytes / 2, Len: regionBytes}},
		fi.MRDMABuf, true, wait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Leave(wait) })
	return m
}

// put writes to memory of any kind, and get reads.
func put(t *testing.T, addr uint64, b []byte) {
	t.Helper()
	if err := hmem.Store(addr, b); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, addr uint64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if err := hmem.Load(b, addr); err != nil {
		t.Fatal(err)
	}
	return b
}

// want checks what memory has.
func want(t *testing.T, what string, addr uint64, b []byte) {
	t.Helper()
	if got := get(t, addr, len(b)); !bytes.Equal(got, b) {
		t.Errorf("%s: %x, want %x", what, got, b)
	}
}
