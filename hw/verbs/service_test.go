package verbs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
)

// serviceBench is a bench with a service: the tests say what packets have come, and find those that it sends.
type serviceBench struct {
	*bench
	s *service
}

func newServiceBench(t *testing.T) *serviceBench { return withService(newBench(t)) }

// withService gives a bench a service.
func withService(of *bench) *serviceBench {
	b := &serviceBench{bench: of}
	i := b.Iface
	i.byKey, i.gone = map[[addressBytes]byte]*Endpoint{}, newGraveyard()
	i.addr = sample
	i.addr.nonce = 1
	b.s = &service{
		i: i, cq: null.CQ(1), qp: null.QP(), mr: &ibv.MR{},
		memory: make([]byte, serviceStride*(serviceRecv+serviceSend)), ahs: map[ibv.Path]*ibv.AH{},
		active: map[*Endpoint]struct{}{}, wake: make(chan struct{}, 1),
	}
	i.svc = b.s
	for n := range serviceSend {
		b.s.free = append(b.s.free, serviceRecv+n)
	}
	b.e.addr = stranger(0)
	b.e.addr.appendTo(b.e.key[:0])
	b.e.name.Store(new(b.e.addr.appendTo(nil)))
	b.s.ahs[i.path(&b.e.addr)] = &ibv.AH{}
	return b
}

// stranger is the address of peer n, 0 to 9999.
func stranger(n int) address {
	a := sample
	a.nonce = uint64(1000 + n)
	return a
}

// known makes the bench's endpoint that of peer 0.
func (b *serviceBench) known() { b.byKey[b.e.key] = b.e }

// from is a packet of a peer's, as it arrives.
func (b *serviceBench) from(n int, p packet) []byte {
	p.nonce, p.from, p.qp = b.addr.nonce, stranger(n), 7
	return p.appendTo(nil)
}

// comes has a packet of a peer's be taken at once.
func (b *serviceBench) comes(n int, p packet) { b.s.packet(b.from(n, p)) }

// sentTo are the packets that the service has sent to a peer, in the order of the buffers.
func (b *serviceBench) sentTo(n int) (list []packet) {
	for k := range serviceSend {
		at := serviceRecv + k
		if slices.Contains(b.s.free, at) {
			continue
		}
		if p, err := parsePacket(b.s.memory[at*serviceStride:][:packetBytes], stranger(n).nonce); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// TestServiceFull: answers to packets of peers that are not known wait for buffers, and meanwhile more packets come.
func TestServiceFull(t *testing.T) {
	b := newServiceBench(t)
	b.s.free = nil
	hello := func(n int) {
		copy(b.s.memory[n*serviceStride+ibv.GRHBytes:], b.from(n, packet{kind: packetHello, epoch: 5}))
		null.Complete(1, ibv.Done{ID: uint64(n), Bytes: ibv.GRHBytes + packetBytes})
	}
	const more = 32 // than are taken at a time
	for n := range more + 1 {
		hello(n)
	}
	for n := range serviceSend - 1 {
		null.Complete(1, ibv.Done{ID: uint64(serviceRecv + n)})
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for b.s.takeCompletions() > 0 {
		}
	}()
	select {
	case <-taken:
	case <-time.After(10 * time.Second):
		t.Fatal("the service does not go on")
	}
	if n := len(b.s.free); n != 0 {
		t.Errorf("%d buffers are free: packets were not answered", n)
	}
	if list := b.sentTo(0); len(list) != 1 || list[0].kind != packetLost || list[0].got != 5 {
		t.Errorf("the first is answered by %+v", list)
	}
}

// TestLostIsSaid: a hello of a connection that was given up here is answered so, whether the peer has joined its first
// queue pair or a later one; another kind of packet is not.
func TestLostIsSaid(t *testing.T) {
	for what, p := range map[string]packet{
		"a later queue pair":        {kind: packetHello, epoch: 8},
		"a later one, joined":       {kind: packetHello, epoch: 8, got: 1},
		"the first one, joined":     {kind: packetHello, epoch: 8, got: 1, flags: flagFirst | flagWant},
		"one for memory, is silent": {kind: packetMemory, epoch: 8, got: 1},
	} {
		b := newServiceBench(t)
		b.comes(0, p)
		list := b.sentTo(0)
		if p.kind != packetHello {
			if len(list) != 0 {
				t.Errorf("%s: answered by %+v", what, list)
			}
			continue
		}
		if len(list) != 1 || list[0].kind != packetLost || list[0].got != 8 || len(b.byKey) != 0 {
			t.Errorf("%s: answered by %+v, %d endpoints", what, list, len(b.byKey))
		}
	}
}

// TestConnectedByPeer: a peer that was lost is not kept away from once its own hello has come.
func TestConnectedByPeer(t *testing.T) {
	b := newServiceBench(t)
	to := stranger(0)
	b.gone.add(b.e.key, time.Now().Add(time.Hour))
	if _, err := b.Connect(to.appendTo(nil)); !errors.Is(err, hw.ErrNoPath) {
		t.Errorf("before its hello: %v", err)
	}
	b.known()
	if e, err := b.Connect(to.appendTo(nil)); e != hw.Endpoint(b.e) || err != nil {
		t.Errorf("then: %v, %v", e, err)
	}
}

// TestLostOthers: while a peer that was lost is connected to again, and does not answer soon, other transports may be
// tried. It is not so with a peer of which nothing is known.
func TestLostOthers(t *testing.T) {
	to := stranger(0)
	for _, c := range []struct {
		lost, late, ready bool
		others            bool // may be tried
	}{{}, {late: true}, {lost: true}, {lost: true, late: true, others: true}, {lost: true, late: true, ready: true}} {
		b := newServiceBench(t)
		b.cfg.AwaitPeer = true
		made := time.Now()
		if c.late {
			made = made.Add(-answerSoon)
		}
		if c.lost {
			b.gone.add(b.e.key, made)
		}
		b.e.othersFrom = b.endpointOf(to, nil, made).othersFrom
		b.known()
		b.e.ready.Store(c.ready)
		_, err := b.Connect(to.appendTo(nil))
		if c.ready != (err == nil) || !c.ready && !errors.Is(err, hw.ErrUnreachable) ||
			errors.Is(err, hw.ErrNoPath) != c.others {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestByeOfLost: a peer that has closed is not connected to again, whatever is known of it when its bye comes.
func TestByeOfLost(t *testing.T) {
	bye := packet{kind: packetBye, seq: 3}
	lost := errors.New("the path is lost")
	for what, c := range map[string]struct {
		do   func(b *serviceBench)
		want bool
	}{
		"never known": {func(b *serviceBench) { b.comes(0, bye) }, false},
		"gone": {func(b *serviceBench) {
			b.gone.add(b.e.key, time.Now())
			b.comes(0, bye)
		}, true},
		"failed": {func(b *serviceBench) {
			b.known()
			b.e.fail(lost)
			b.comes(0, bye)
			b.e.giveEvents(time.Now())
		}, true},
		"failed, while its end is reported": {func(b *serviceBench) {
			b.known()
			b.e.fail(lost)
			b.OnPeerEvent(func(hw.PeerEvent) { b.comes(0, bye) })
			b.e.giveEvents(time.Now())
		}, true},
		"connected": {func(b *serviceBench) {
			b.known()
			b.comes(0, bye)
			b.e.giveEvents(time.Now())
		}, true},
		"failed, without a bye": {func(b *serviceBench) {
			b.known()
			b.e.fail(lost)
			b.e.giveEvents(time.Now())
		}, false},
	} {
		b := newServiceBench(t)
		b.OnPeerEvent(func(hw.PeerEvent) {})
		b.e.c.Source, b.e.c.LastSeq, b.rx.empty = 1, 3, true
		c.do(b)
		if got := b.gone.closed(b.e.key); got != c.want {
			t.Errorf("%s: closed %v, want %v", what, got, c.want)
		}
		if b.e.Err() != nil && b.byKey[b.e.key] != nil {
			t.Errorf("%s: the endpoint is not forgotten", what)
		}
	}
}

// TestRefusalPasses: a refusal counts until the peer has connected, and not against a peer that has answered before.
func TestRefusalPasses(t *testing.T) {
	refuse := packet{kind: packetRefuse, code: uint32(unix.ENOMEM)}
	for what, connected := range map[string]func(b *serviceBench){
		"messages": func(b *serviceBench) { b.e.joined() },
		"memory":   (*serviceBench).passive,
	} {
		b := newServiceBench(t)
		b.known()
		_, undo := null.PD(false)
		t.Cleanup(undo)
		b.e.mem.queue.SendQueue = b.e.msg.SendQueue
		b.comes(0, refuse)
		if err := b.e.refused(); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("%s: refused with %v", what, err)
		}
		if err := b.e.memory.timedOut(b.e); !errors.Is(err, hw.ErrPathLost) || !errors.Is(err, unix.ENOMEM) {
			t.Errorf("%s: refused for long: %v", what, err)
		}
		if connected(b); b.e.refused() != nil || b.e.Err() != nil {
			t.Errorf("%s: refused after it has connected: %v, %v", what, b.e.refused(), b.e.Err())
		}
		if err := b.e.hello.timedOut(b.e); !errors.Is(err, hw.ErrPathLost) || !errors.Is(err, unix.ETIMEDOUT) {
			t.Errorf("%s: silent then: %v", what, err)
		}
	}
	b := newServiceBench(t)
	b.known()
	b.e.ready.Store(false)
	b.comes(0, refuse)
	if err := b.e.hello.timedOut(b.e); errors.Is(err, hw.ErrPathLost) || !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("a peer that has never answered: %v", err)
	}
}

// TestNotAgain: what has broken and cannot be connected again, because the device refuses that here, ends the path to a
// peer that lives; a first connection ends the peer.
func TestNotAgain(t *testing.T) {
	for what, again := range map[string]func(b *serviceBench){
		"messages":                  func(b *serviceBench) { b.e.renew() },
		"one-sided":                 func(b *serviceBench) { b.e.memoryBroken(&b.e.mem.queue, 0, hw.ErrKey) },
		"messages, to be joined":    func(b *serviceBench) { b.hello() },
		"one-sided, to be joined":   func(b *serviceBench) { b.passive() },
		"messages, first to be one": func(b *serviceBench) { b.e.ready.Store(false); b.hello() },
	} {
		b := withService(memoryBench(t, false))
		b.known()
		d, _ := nullDomain(t, false)
		b.d.pd = d.pd
		b.d.attr.MaxSGE = ibv.MaxSGE
		null.LimitQP(0, 0)
		null.RefuseStates(int(unix.EINVAL))
		c := &hw.Completion{}
		c.Expect(1)
		b.put(t, c)
		again(b)
		first := strings.Contains(what, "first")
		if err := b.e.Err(); !errors.Is(err, hw.ErrPeerDead) || errors.Is(err, hw.ErrPathLost) == first {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// hello has the peer's first hello come.
func (b *serviceBench) hello() {
	b.e.hello = hello{epoch: 1, first: 1, qp: null.QP(), running: true}
	b.comes(0, packet{kind: packetHello, epoch: 2, flags: flagFirst})
}

// passive has the peer answer to one-sided operations.
func (b *serviceBench) passive() {
	b.e.memory = hello{epoch: 3, qp: null.QP(), running: true}
	b.comes(0, packet{kind: packetPassive, epoch: 3, got: 3})
}
