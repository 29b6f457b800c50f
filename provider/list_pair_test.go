package provider

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// Lists between the machines of a pair, over nothing but their RDMA devices, whose wire loses packets or is away.

const (
	pairElements = 256
	pairSize     = 4096
)

// pairList is a list of every other block of memory of node 1's, to every other one of node 0's, on node 1.
type pairList struct {
	*pairSide
	memory  []byte // of this node
	list    *List  // on node 1
	refused error  // the last post that was
	failed  int    // posts that have ended with an error
	first   int    // lists that ended well without such a post before
}

// meetList joins the two machines, which take a peer for gone after a time.
func meetList(t *testing.T, timeout time.Duration) *pairList {
	p := &pairList{memory: make([]byte, 2*pairElements*pairSize)}
	p.pairSide = meetPairWith(t, func(c *config.Config) { c.PeerTimeout = timeout })
	if p.target() {
		p.swap(p.token(p.region(p.memory, 7, fi.RemoteRead|fi.RemoteWrite)))
		return p
	}
	r := p.opens(p.swap(nil))
	p.list = p.pairSide.list([]Piece{{
		Local: iovOf(p.memory)[0].Base, LocalStride: 2 * pairSize, Remote: r, Addr: r.Info().Base,
		RemoteStride: 2 * pairSize, Len: pairSize, Count: pairElements,
	}})
	return p
}

// fill gives the elements of this node what they have in a round.
func (p *pairList) fill(seed byte) {
	for i := range pairElements {
		copy(p.memory[2*i*pairSize:], bytes.Repeat([]byte{seed ^ byte(i)}, pairSize))
	}
}

// has reports the first element here that is not of a round, -1: all are.
func (p *pairList) has(seed byte) int {
	for i := range pairElements {
		if !bytes.Equal(p.memory[2*i*pairSize:][:pairSize], bytes.Repeat([]byte{seed ^ byte(i)}, pairSize)) {
			return i
		}
		if !bytes.Equal(p.memory[(2*i+1)*pairSize:][:pairSize], make([]byte, pairSize)) {
			return i // what no element has
		}
	}
	return -1
}

// once posts the list and reports whether it ended well. One that fails names an element, and how much is done.
func (p *pairList) once(t *testing.T, read bool) bool {
	t.Helper()
	if err := p.list.Post(&ListArgs{Read: read, Flags: fi.DeliveryComplete}); err != nil {
		if fi.ErrnoOf(err) != fi.EAGAIN && fi.ErrnoOf(err) != fi.ECONNRESET && fi.ErrnoOf(err) != fi.EHOSTUNREACH {
			t.Fatal(err)
		}
		p.refused = err
		p.ep.Progress()
		p.housekeep()
		return false
	}
	var got [1]cq.Entry
	for end := time.Now().Add(time.Minute); ; {
		p.ep.Progress()
		p.housekeep()
		n, err := p.cq.Read(got[:])
		switch {
		case n == 1:
			return true
		case errors.Is(err, fi.EAVAIL):
			e, _ := p.cq.ReadErr()
			p.failed++
			t.Logf("element %d: %v, %d bytes are done", e.Data, e.Err, e.Len)
			if e.Data >= pairElements || e.Len > pairElements*pairSize || e.Len%pairSize != 0 ||
				e.Err != fi.ECONNRESET && e.Err != fi.EHOSTUNREACH {
				t.Errorf("%v, element %d of %d, %d bytes", e.Err, e.Data, pairElements, e.Len)
			}
			return false
		case time.Now().After(end):
			t.Fatal("a list does not end")
		}
	}
}

// rounds has lists be written and read until they have gone well often enough, and compares. The other node serves.
func (p *pairList) rounds(t *testing.T, count int) {
	for i := range count {
		seed := byte(3*i + 1)
		if p.target() {
			p.serve() // while it writes
			if bad := p.has(seed); bad >= 0 {
				t.Errorf("round %d: element %d is not written", i, bad)
			}
			p.serve() // while it reads
			continue
		}
		p.fill(seed)
		p.until(t, false)
		p.serve()
		p.fill(0)
		p.until(t, true)
		if bad := p.has(seed); bad >= 0 {
			t.Errorf("round %d: element %d is not read", i, bad)
		}
		p.serve()
	}
}

// until posts the list until it ends well.
func (p *pairList) until(t *testing.T, read bool) {
	t.Helper()
	before := p.failed
	for end := time.Now().Add(time.Minute); !p.once(t, read); {
		if time.Now().After(end) {
			t.Fatalf("no list ends well; the last post: %v", p.refused)
		}
	}
	if p.failed == before {
		p.first++
	}
}

// went checks that elements have gone by the device, at least some.
func (p *pairList) went(t *testing.T, least uint64) {
	t.Helper()
	if p.target() {
		return
	}
	if n := p.counts("list_rdma"); n < least {
		t.Errorf("%d elements went by the device, at least %d should have", n, least)
	}
}

// netem adds a way to treat packets that this machine sends, or takes it away.
func netem(t *testing.T, what string, how ...string) {
	t.Helper()
	args := append([]string{"qdisc", what, "dev", netdev(), "root", "netem"}, how...)
	if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
		t.Fatalf("tc: %v: %s", err, out)
	}
}

// TestPairList: elements go by the device, also of a network that loses packets: most lists then end well at their
// first post, as the device itself sends again what is lost.
func TestPairList(t *testing.T) {
	p := meetList(t, 30*time.Second)
	p.rounds(t, 2)
	p.went(t, 4*pairElements)
	if !p.target() && p.first != 4 {
		t.Errorf("%d of 4 lists went well at their first post", p.first)
	}
	p.serve()
	netem(t, "add", "loss", "1%")
	p.first = 0
	p.rounds(t, 3)
	if !p.target() && p.first <= 3 {
		t.Errorf("%d of 6 lists went well at their first post, where 1 %% of the packets are lost", p.first)
	}
	netem(t, "del")
	p.serve()
}

// TestPairListLoss: while the network loses a tenth of the packets, where soft-RoCE itself breaks connections, each
// list ends: well, with all of its bytes there and none besides, or with the first element that has failed; the next
// one is posted anew. When no packets are lost any more lists go by the device as before.
func TestPairListLoss(t *testing.T) {
	p := meetList(t, 10*time.Second)
	p.rounds(t, 1)
	netem(t, "add", "loss", "10%")
	p.rounds(t, 2)
	netem(t, "del")
	p.serve()
	before := uint64(0)
	if !p.target() {
		before = p.counts("list_rdma")
	}
	p.rounds(t, 1)
	p.went(t, before+2*pairElements)
}

// TestPairListPortDown: lists end well, or with the first element that has failed, while the port is down for three
// seconds, which is longer than the device tries. A write of which it is not known whether it was done ends the
// connection, and nothing is done twice. What no element has stays as it is. When the port is up again lists go by the
// device, as before.
func TestPairListPortDown(t *testing.T) { portDown(t, 20*time.Second) }

// TestPairListPortAway: as well if the port is down for so long that both sides have given the other up.
func TestPairListPortAway(t *testing.T) { portDown(t, time.Second) }

func portDown(t *testing.T, timeout time.Duration) {
	p := meetList(t, timeout)
	p.rounds(t, 1)
	if p.target() {
		p.serve()
		for i := range pairElements {
			if !bytes.Equal(p.memory[(2*i+1)*pairSize:][:pairSize], make([]byte, pairSize)) {
				t.Errorf("the bytes behind element %d are written", i)
			}
		}
		p.rounds(t, 2)
		return
	}
	down := exec.Command("sh", "-c", "sleep 0.1; ip link set $NETDEV down; sleep 3; ip link set $NETDEV up")
	if err := down.Start(); err != nil {
		t.Fatal(err)
	}
	back := make(chan struct{})
	go func() {
		_ = down.Wait() // what is wrong then lists say
		close(back)
	}()
	well := true
	for up := false; well && !up; {
		well = p.once(t, false)
		select {
		case <-back:
			up = true
		default:
		}
	}
	<-back
	t.Logf("the port is up; all lists went well: %v", well)
	p.until(t, true)
	p.serve()
	before := p.counts("list_rdma")
	p.rounds(t, 2)
	p.went(t, before+4*pairElements)
}
