package rendezvous

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
)

// ways are those in which payloads get to the receiver, in good circumstances and in bad ones.
var ways = []way{
	{name: "read", host: []int{0, 0, 0}},
	{name: "offload", host: []int{0, 0, 0}, offload: true, words: true},
	{name: "read in segments", host: []int{0, 0, 0}, segments: true},
	{name: "shared", host: []int{0, 0, 0}, words: true, full: 6},
	{name: "shared, writes fail", host: []int{0, 0, 0}, words: true, fails: true},
	{name: "refused", host: []int{0, 0, 0}, refuses: true, full: 6},
	{name: "refused in segments", host: []int{0, 0, 0}, refuses: true, segments: true},
	{name: "refused when shared", host: []int{0, 0, 0}, refuses: true, words: true, full: 9},
	{name: "mapped", host: []int{0, 0, 0}, device: true, full: 6},
	{name: "got", host: []int{0, 1, 2}, full: 6},
	{name: "got in segments", host: []int{0, 1, 2}, segments: true, full: 9},
	{name: "helped", host: []int{0, 1, 2}, software: true, full: 12},
	{name: "helped, with room", host: []int{0, 1, 2}, software: true},
	{name: "in fragments", host: []int{0, 1, 2}, nogets: true, full: 3},
	{name: "mixed", host: []int{0, 0, 1, 1}, words: true, software: true, segments: true, full: 6},
}

// exchange is a message of a test, and its receive.
type exchange struct {
	from, to int
	m        *message
	rv       *receive
}

// cut cuts n bytes into at most four parts.
func (net *network) cut(n int) (parts []int) {
	for len(parts) < 3 && n != 0 && net.r.IntN(3) == 0 {
		k := net.r.IntN(n + 1)
		parts, n = append(parts, k), n-k
	}
	return append(parts, n)
}

// length is one of a message, near those at which something changes.
func (net *network) length() int {
	edges := []int{0, 1, 4095, 4096, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 100 << 10, 256 << 10, 300_000}
	return max(0, edges[net.r.IntN(len(edges))]+net.r.IntN(5)-2)
}

// exchanges sends messages of chance between nodes, of which some are received before they are sent and some after.
func (net *network) exchanges(n int, among []int) (all []*exchange) {
	for range n {
		tag := net.tags
		net.tags++
		x := &exchange{from: among[net.r.IntN(len(among))]}
		for x.to = x.from; x.to == x.from; {
			x.to = among[net.r.IntN(len(among))]
		}
		k := net.length()
		room := k
		if net.r.IntN(4) == 0 {
			room = net.r.IntN(k + 20)
		}
		early := net.r.IntN(2) == 0
		if early {
			x.rv = net.nodes[x.to].receive(tag, net.cut(room)...)
		}
		x.m = net.nodes[x.from].send(x.to, tag, net.cut(k)...)
		for range net.r.IntN(4) {
			net.progress()
		}
		if !early {
			x.rv = net.nodes[x.to].receive(tag, net.cut(room)...)
		}
		all = append(all, x)
	}
	return all
}

// ended reports whether both sides of an exchange have ended, of which a node that is gone needs no end, nor has a
// receive whose message has never come.
func (net *network) ended(x *exchange) bool {
	from, to := net.nodes[x.from], net.nodes[x.to]
	return (x.m.ended || from.gone) && (x.rv.ended || to.gone || from.gone && to.heard[x.from] != 0 && x.rv.status == 0)
}

// settle makes progress until all have ended.
func (net *network) settle(all []*exchange) {
	net.t.Helper()
	for range 100_000 {
		left := 0
		for _, x := range all {
			if !net.ended(x) {
				left++
			}
		}
		if left == 0 {
			for range 50 {
				net.progress()
			}
			return
		}
		net.progress()
	}
	for _, x := range all {
		if !net.ended(x) {
			net.t.Fatalf("%d to %d, %d bytes: sent %v, received %v, does not end", x.from, x.to, len(x.m.data),
				x.m.ended, x.rv.ended)
		}
	}
}

// check compares an exchange with a copy. One that a node which has died is part of may have failed.
func (net *network) check(x *exchange) {
	net.t.Helper()
	rv, n := x.rv, min(len(x.m.data), x.rv.room())
	if rv.ended && !bytes.Equal(rv.after, rv.memory) {
		net.t.Errorf("%d to %d: memory changes after the end", x.from, x.to)
	}
	died := net.nodes[x.from].gone || net.nodes[x.to].gone
	if !died && (rv.status != fi.Success || x.m.status != fi.Success || rv.done != uint64(n)) {
		net.t.Errorf("%d to %d, %d bytes: sent %v, received %v, %d bytes", x.from, x.to, n, x.m.status, rv.status,
			rv.done)
	}
	if rv.ended && rv.status == fi.Success && !bytes.Equal(rv.filled(x.m.data), rv.memory) {
		net.t.Fatalf("%d to %d: %d bytes are wrong", x.from, x.to, n)
	}
	if !bytes.Equal(rv.filled(rv.bytes()[:n]), rv.memory) { // a failed one has left what it may in its own place
		net.t.Fatalf("%d to %d: bytes beside the target have changed", x.from, x.to)
	}
}

// idle fails the test if a node keeps anything of messages that have ended.
func (n *node) idle() {
	n.t.Helper()
	if n.gone {
		return
	}
	left := n.protocol.Left()
	if left != (Left{}) || n.rx.Waiting() || n.rx.Active() || n.rx.Live() != 0 || len(n.rx.foreign) != 0 ||
		n.flows.Busy() {
		n.t.Errorf("node %d: left %+v, %d operations", n.number, left, n.rx.Live())
	}
	if len(n.flying) != 0 || n.exposed.Any() {
		n.t.Errorf("node %d: %d operations of devices, %d regions", n.number, len(n.flying), n.open)
	}
}

// seeds is how many networks of chance a test makes: n, or a few.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return 3
	}
	return n
}

// eachNetwork runs a test in each way, over networks of chance: n seeds, or a few. Every node is idle afterwards. after
// is called at the end of a way, nil: nothing is.
func eachNetwork(
	t *testing.T, n uint64, test func(t *testing.T, net *network, seed uint64), after func(t *testing.T, w way),
) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			for seed := range seeds(n) {
				net := newNetwork(t, seed, w)
				test(t, net, seed)
				for _, n := range net.nodes {
					n.idle()
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			if after != nil {
				after(t, w)
			}
		})
	}
}

// complete has exchanges end, and checks them.
func (net *network) complete(all []*exchange) {
	net.settle(all)
	for _, x := range all {
		net.check(x)
	}
}

// begin begins n exchanges among all nodes, and goes on for some steps.
func (net *network) begin(n, steps int) []*exchange {
	all := net.exchanges(n, []int{0, 1, 2})
	for range steps {
		net.progress()
	}
	return all
}

// TestModel moves messages of chance in each way, and compares them with copies: lengths, pieces on both sides,
// receives that are too short, orders of arrival, and no room now and then.
func TestModel(t *testing.T) {
	helped, wrote := uint64(0), 0
	eachNetwork(t, 20, func(t *testing.T, net *network, _ uint64) {
		net.complete(net.begin(12, 0))
		for _, n := range net.nodes {
			helped += n.counts[stats.RxHelped]
			if wrote += n.wrote; n.bad != 0 {
				t.Errorf("node %d: %d messages are malformed", n.number, n.bad)
			}
		}
	}, func(t *testing.T, w way) {
		if w.software && !w.segments && helped == 0 || w.words && !w.refuses && !w.segments && wrote == 0 {
			t.Error("no sender has helped")
		}
		helped, wrote = 0, 0
	})
}

// TestLost has a node die at any step: what it is part of ends, once, the rest is not disturbed, and nothing is written
// or read after the end.
func TestLost(t *testing.T) {
	eachNetwork(t, 30, func(t *testing.T, net *network, seed uint64) {
		all := net.begin(9, int(seed)%15)
		net.nodes[seed%3].die()
		net.complete(all)
	}, nil)
}

// TestRestart has a node die at any step and begin anew as the same source, with words that it shares as they were at
// first: messages with it go on.
func TestRestart(t *testing.T) {
	eachNetwork(t, 15, func(t *testing.T, net *network, seed uint64) {
		all := net.begin(9, int(seed)%15)
		n := net.nodes[seed%3]
		n.die()
		net.settle(all)
		for _, other := range net.nodes {
			for other != n && other.heard[n.number] == 0 {
				net.progress()
			}
		}
		n.restart()
		net.complete(net.begin(9, 0))
	}, nil)
}

// TestDetach closes an endpoint with messages under way in each way: each receive ends, no memory of one is written
// after, and no region stays.
func TestDetach(t *testing.T) {
	eachNetwork(t, 15, func(t *testing.T, net *network, seed uint64) {
		all := net.begin(9, int(seed))
		n := net.nodes[0]
		n.gone, n.lost = true, true
		n.protocol.Detach()
		if n.rx.Live() != 0 || n.rx.Waiting() || n.rx.Active() {
			t.Errorf("%d operations are left", n.rx.Live())
		}
		for _, op := range n.flying {
			op.end(n.r.IntN(2) == 0)
		}
		net.progress() // others go on with what they were left
		n.protocol.Close()
		n.protocol.Abandon()
		n.die()
		net.complete(all)
	}, nil)
}

// TestNoPiece: a message of which the transport's limits leave nothing for a get fails, and does not hang.
func TestNoPiece(t *testing.T) {
	for _, w := range ways {
		if w.host[0] == w.host[1] || w.nogets {
			continue
		}
		net := newNetwork(t, 1, w)
		for _, n := range net.nodes {
			n.attr[1].MaxIOV = 0
		}
		rv := net.nodes[1].receive(1, 300_000)
		x := &exchange{from: 0, to: 1, m: net.nodes[0].send(1, 1, 300_000), rv: rv}
		net.settle([]*exchange{x})
		if rv.status != fi.EIO || x.m.status != fi.EIO {
			t.Errorf("%s: sent %v, received %v", w.name, x.m.status, rv.status)
		}
		for _, n := range net.nodes {
			n.idle()
		}
	}
}
