// Package hwtest is the conformance suite for backends of package hw. Every
// backend passes it: a test in the backend calls [Run] with a function that
// opens fresh interfaces. What a backend's capabilities do not offer is not
// tested.
package hwtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// Factory opens an interface with an address of its own. The suite closes it.
type Factory func(t testing.TB) hw.Iface

// Deadline bounds how long the suite waits for a message or an event: only what hangs takes so long.
const Deadline = time.Minute

// Run runs all tests of the suite against the backend that open opens.
func Run(t *testing.T, open Factory) {
	for _, c := range []struct {
		name string
		need hw.Cap
		f    func(*testing.T, Factory)
	}{
		{"Address", 0, testAddress},
		{"ConnectTwice", 0, testConnectTwice},
		{"SourceReaches", hw.CapAMShort, testSourceReaches},
		{"Sizes", hw.CapAMShort | hw.CapAMBcopy, testSizes},
		{"TooLong", hw.CapAMShort | hw.CapAMBcopy, testTooLong},
		{"Order", hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered, testOrder},
		{"FullShort", hw.CapAMShort, testFullShort},
		{"FullBcopy", hw.CapAMBcopy, testFullBcopy},
		{"FullUndelivered", hw.CapAMShort, testFullUndelivered},
		{"ManyEndpoints", hw.CapAMShort, testManyEndpoints},
		{"Threads", hw.CapAMShort | hw.CapAMBcopy, testThreads},
		{"SendInHandler", hw.CapAMShort, testSendInHandler},
		{"Postpone", hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered, testPostpone},
		{"PostponeDriven", hw.CapDriven | hw.CapAMShort, testPostponeDriven},
		{"EagerWindow", 0, testEagerWindow},
		{"ReceiverCloses", hw.CapAMShort, testReceiverCloses},
		{"SenderCloses", hw.CapAMShort, testSenderCloses},
		{"AnswerThenClose", hw.CapAMShort, testAnswerThenClose},
		{"SenderClosesBcopy", hw.CapAMBcopy, testSenderClosesBcopy},
		{"Reopen", hw.CapAMShort, testReopen},
		{"Random", hw.CapAMShort | hw.CapAMBcopy, testRandom},
		{"NoAllocation", hw.CapAMShort | hw.CapAMBcopy, testNoAllocation},
		{"Get", hw.CapPeerMemory, testGet},
		{"GetErrors", hw.CapPeerMemory, testGetErrors},
		{"PutGet", 0, testPutGet},
		{"Keys", 0, testKeys},
		{"Device", 0, testDevice},
		{"Pieces", hw.CapPieces, testPieces},
		{"PiecesRefused", hw.CapPieces, testPiecesRefused},
		{"CloseRegion", hw.CapPutZcopy, testCloseRegion},
		{"PutPlaced", hw.CapPutZcopy | hw.CapPutPlaced, testPutPlaced},
		{"OneSidedRandom", hw.CapPutZcopy | hw.CapGetZcopy, testOneSidedRandom},
		{"Flush", hw.CapFlush | hw.CapAMShort, testFlush},
		{"FlushPut", hw.CapFlush | hw.CapPutZcopy | hw.CapAMShort, testFlushPut},
		{"Wakeup", hw.CapWakeup | hw.CapAMShort, testWakeup},
		{"Direct", hw.CapDirectRing, testDirect},
		{"Driven", hw.CapDriven | hw.CapAMShort, testDriven},
		{"DrivenStops", hw.CapDriven, testDrivenStops},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := open(t)
			caps := i.Attr().Caps
			i.Close()
			if caps&c.need != c.need {
				t.Skipf("the backend does not offer capabilities %#x", c.need&^caps)
			}
			c.f(t, open)
		})
	}
}

// message is what a handler got, copied.
type message struct {
	id      hw.AMID
	src     hw.Source
	header  uint64
	head    []byte
	payload []byte
}

// node is an interface with handlers that record.
type node struct {
	hw.Iface
	t    testing.TB
	got  []message
	gone []hw.PeerEvent

	mu     sync.Mutex // taken while the node is turned
	closed bool
}

// nodes are the open nodes of each test.
var nodes struct {
	mu sync.Mutex
	of map[testing.TB][]*node
}

// networked reports whether the node's peers are reached over a network. There
// the sender too must make progress, arrivals take their time, and room comes back
// in batches.
func (n *node) networked() bool { return n.Attr().Caps&hw.CapSameHost == 0 }

// turn has the networked nodes of a test do what is not the delivery of messages.
func turn(t testing.TB) {
	nodes.mu.Lock()
	list := nodes.of[t]
	nodes.mu.Unlock()
	for _, n := range list {
		n.mu.Lock()
		if !n.closed && n.networked() {
			n.Progress(0)
		}
		n.mu.Unlock()
	}
}

// Close closes the interface, which then is not turned any more.
func (n *node) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	return n.Iface.Close()
}

func newNode(t testing.TB, open Factory) *node {
	n := &node{Iface: open(t), t: t}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	for id := hw.AMID(0); id < hw.MaxAM; id++ {
		n.SetHandler(id, func(src hw.Source, header uint64, head, payload []byte) {
			n.got = append(n.got, message{id, src, header, bytes.Clone(head), bytes.Clone(payload)})
		})
	}
	n.OnPeerEvent(func(e hw.PeerEvent) { n.gone = append(n.gone, e) })
	nodes.mu.Lock()
	defer nodes.mu.Unlock()
	if nodes.of == nil {
		nodes.of = map[testing.TB][]*node{}
	}
	if nodes.of[t] == nil {
		t.Cleanup(func() {
			nodes.mu.Lock()
			defer nodes.mu.Unlock()
			delete(nodes.of, t)
		})
	}
	nodes.of[t] = append(nodes.of[t], n)
	return n
}

// connect connects n to to, which both progress until it has happened: a
// network takes its time, another process of this host may not.
func (n *node) connect(to *node) hw.Endpoint {
	n.t.Helper()
	var ep hw.Endpoint
	until(n.t, "connection", func() bool {
		var err error
		ep, err = n.Connect(to.Address())
		if errors.Is(err, hw.ErrUnreachable) && n.Attr().Caps&hw.CapSameHost == 0 {
			to.Progress(0)
			return false
		}
		if err != nil {
			n.t.Fatalf("connect: %v", err)
		}
		return true
	})
	return ep
}

// until calls step until it returns true, and fails after Deadline.
func until(t testing.TB, what string, step func() bool) {
	t.Helper()
	for end := time.Now().Add(Deadline); !step(); turn(t) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, Deadline)
		}
		runtime.Gosched()
	}
}

// receive progresses until count messages have arrived since the last call.
func (n *node) receive(count int) []message {
	n.t.Helper()
	until(n.t, fmt.Sprintf("%d messages", count), func() bool {
		n.Progress(16)
		return len(n.got) >= count
	})
	got := n.got
	n.got = nil
	if len(got) != count {
		n.t.Fatalf("%d messages instead of %d", len(got), count)
	}
	return got
}

// pattern fills b with bytes that depend on seed and position.
func pattern(b []byte, seed uint64) {
	r := rand.NewPCG(seed, 7)
	for i := range b {
		b[i] = byte(r.Uint64())
	}
}

func patterned(n int, seed uint64) []byte {
	b := make([]byte, n)
	pattern(b, seed)
	return b
}

// retry progresses the receiver while send has no resources.
func retry(t testing.TB, to *node, send func() error) {
	t.Helper()
	until(t, "resources", func() bool {
		err := send()
		if errors.Is(err, hw.ErrNoResource) {
			to.Progress(16)
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
}

func (m *message) check(t testing.TB, id hw.AMID, header uint64, head, payload []byte) {
	t.Helper()
	if m.id != id || m.header != header || !bytes.Equal(m.head, head) || !bytes.Equal(m.payload, payload) {
		t.Fatalf("got id %d header %#x head %d bytes payload %d bytes, want %d %#x %d %d (or contents differ)",
			m.id, m.header, len(m.head), len(m.payload), id, header, len(head), len(payload))
	}
}

func testAddress(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	if len(a.Address()) == 0 || bytes.Equal(a.Address(), b.Address()) {
		t.Fatalf("addresses %x and %x", a.Address(), b.Address())
	}
	if _, err := a.Connect([]byte{0xff}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("connect to nonsense: %v", err)
	}
	c := open(t)
	address := c.Address()
	c.Close()
	if _, err := a.Connect(address); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect to a closed interface: %v", err)
	}
}

func testConnectTwice(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	if e1, e2 := a.connect(b), a.connect(b); e1 != e2 {
		t.Error("two endpoints to one interface")
	}
	if a.connect(a).Err() != nil {
		t.Error("no endpoint to itself")
	}
	if got := a.connect(b).Address(); !bytes.Equal(got, b.Address()) {
		t.Errorf("the endpoint leads to %x, not %x", got, b.Address())
	}
}

func testSourceReaches(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	if err := a.connect(b).AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	src := b.receive(1)[0].src
	if !b.SourceReaches(src, a.Address()) {
		t.Error("the sender is not reached at its address")
	}
	if b.SourceReaches(src, b.Address()) || b.SourceReaches(src, []byte{0xff}) {
		t.Error("the sender is reached at another address")
	}
}
