package collective

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// net is a group of ranks that run one operation, in an order that chance
// chooses. It takes the bytes of a message when it is sent or any time until
// the sender is notified, and puts them in place any time before the receiver is
// notified, so a plan that touches a buffer too early is found out.
type net struct {
	t     *testing.T
	r     *rand.Rand
	what  string
	runs  []Run
	over  []bool
	sends map[[2]int][]*message // by sender and receiver
	recvs map[[2]int][][]byte
	ready [][2]int // pairs that may have a match
}

type message struct {
	data []byte
	kept bool // taken when it was sent: the sender was notified
}

func newNet(t *testing.T, r *rand.Rand, size int, what string) *net {
	return &net{
		t: t, r: r, what: what, runs: make([]Run, size), over: make([]bool, size),
		sends: map[[2]int][]*message{}, recvs: map[[2]int][][]byte{},
	}
}

// complete has all ranks begin, in any order, and sees that all end and that no message
// is left.
func (n *net) complete() {
	n.t.Helper()
	for _, i := range n.r.Perm(len(n.runs)) {
		n.advance(i)
	}
	for n.step() {
	}
	for i, over := range n.over {
		if !over {
			n.t.Fatalf("%s: rank %d never ends", n.what, i)
		}
	}
	for pair, q := range n.sends {
		if len(q) != 0 {
			n.t.Fatalf("%s: %d messages from rank %d to rank %d are left", n.what, len(q), pair[0], pair[1])
		}
	}
}

func randomBytes(r *rand.Rand, n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(251))
	}
	return b
}

// transport is one rank's transport.
type transport struct {
	n    *net
	rank int
}

func (p transport) Send(to int, data []byte) bool {
	n, pair := p.n, [2]int{p.rank, to}
	n.check(to, p.rank)
	m := &message{data: data}
	if n.r.IntN(2) == 0 {
		m.data, m.kept = bytes.Clone(data), true
	}
	n.sends[pair] = append(n.sends[pair], m)
	n.ready = append(n.ready, pair)
	return m.kept
}

func (p transport) Recv(from int, data []byte) bool {
	n, pair := p.n, [2]int{from, p.rank}
	n.check(from, p.rank)
	for i := range data {
		data[i] = 0xEE
	}
	if q := n.sends[pair]; len(n.recvs[pair]) == 0 && len(q) != 0 && q[0].kept && n.r.IntN(2) == 0 {
		n.move(pair, data)
		return true
	}
	n.recvs[pair] = append(n.recvs[pair], data)
	n.ready = append(n.ready, pair)
	return false
}

func (n *net) check(peer, rank int) {
	if peer < 0 || peer >= len(n.runs) || peer == rank {
		n.t.Fatalf("%s: rank %d deals with rank %d", n.what, rank, peer)
	}
}

// move takes the first message of a pair.
func (n *net) move(pair [2]int, to []byte) *message {
	m := n.sends[pair][0]
	n.sends[pair] = n.sends[pair][1:]
	if len(m.data) != len(to) {
		n.t.Fatalf("%s: rank %d receives %d bytes from rank %d, which sent %d", n.what, pair[1], len(to), pair[0],
			len(m.data))
	}
	copy(to, m.data)
	return m
}

// step matches one pair, and reports whether there is any left.
func (n *net) step() bool {
	if len(n.ready) == 0 {
		return false
	}
	i := n.r.IntN(len(n.ready))
	pair := n.ready[i]
	n.ready[i] = n.ready[len(n.ready)-1]
	n.ready = n.ready[:len(n.ready)-1]
	if len(n.sends[pair]) == 0 || len(n.recvs[pair]) == 0 {
		return true // what comes second is in the list as well
	}
	to := n.recvs[pair][0]
	n.recvs[pair] = n.recvs[pair][1:]
	if m := n.move(pair, to); !m.kept {
		n.ended(pair[0])
	}
	n.ended(pair[1])
	return true
}

func (n *net) ended(rank int) {
	n.runs[rank].Ended()
	if n.runs[rank].Open() == 0 {
		n.advance(rank)
	}
}

func (n *net) advance(rank int) {
	if n.over[rank] {
		n.t.Fatalf("%s: rank %d goes on after its end", n.what, rank)
	}
	n.over[rank] = n.runs[rank].Advance(transport{n, rank})
}

// element is the size of the elements of these tests.
const element = 2

// affine combines two maps x → a·x + b modulo 251, which are bytes a and b:
// the order of operands matters, how they are bracketed does not.
func affine(dst, x, y []byte) {
	for i := 0; i < len(dst); i += element {
		a := int(x[i]) * int(y[i]) % 251
		b := (int(x[i])*int(y[i+1]) + int(x[i+1])) % 251
		dst[i], dst[i+1] = byte(a), byte(b)
	}
}

// sum is the operation whose order does not matter.
func sum(dst, x, y []byte) {
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// keepsOrder reports whether an algorithm combines in the order of ranks.
func keepsOrder(a Algorithm, c *Call) bool {
	switch a {
	case RecursiveDoubling, Rabenseifner, RabenseifnerReduce:
		return true
	case BinomialReduce:
		return c.Root == 0
	}
	return false
}

// model computes what every rank gets, from what all give.
func model(c *Call, in [][]byte, fold func(dst, x, y []byte)) [][]byte {
	n := int(c.Count * c.Elem)
	all := func() []byte {
		b := bytes.Clone(in[0])
		for _, x := range in[1:] {
			fold(b, b, x)
		}
		return b
	}
	out := make([][]byte, c.Size)
	for r := range out {
		switch c.Kind {
		case Broadcast:
			out[r] = bytes.Clone(in[c.Root])
		case AllToAll:
			for _, x := range in {
				out[r] = append(out[r], x[r*n:(r+1)*n]...)
			}
		case AllReduce:
			out[r] = all()
		case AllGather:
			out[r] = bytes.Join(in, nil)
		case ReduceScatter:
			out[r] = all()[r*n : (r+1)*n]
		case Reduce:
			if r == c.Root {
				out[r] = all()
			}
		case Scatter:
			out[r] = in[c.Root][r*n : (r+1)*n]
		case Gather:
			if r == c.Root {
				out[r] = bytes.Join(in, nil)
			}
		}
	}
	return out
}

// try runs one operation and compares with the model.
func try(t *testing.T, r *rand.Rand, c Call, a Algorithm) {
	t.Helper()
	n := newNet(t, r, c.Size, fmt.Sprintf("%+v by algorithm %d", c, a))
	fold := sum
	if keepsOrder(a, &c) {
		fold = affine
	}
	given, in, out := make([][]byte, c.Size), make([][]byte, c.Size), make([][]byte, c.Size)
	for i := range c.Size {
		c.Rank = i
		p := BuildWith(&c, a)
		reads, writes := c.Lengths()
		in[i], out[i] = randomBytes(r, reads), randomBytes(r, writes)
		given[i] = bytes.Clone(in[i])
		if c.Kind == Broadcast {
			given[i] = bytes.Clone(out[i])
		}
		n.runs[i].Start(p, in[i], out[i], randomBytes(r, p.Scratch), fold)
	}
	want := model(&c, given, fold)
	n.complete()
	for i := range c.Size {
		if !bytes.Equal(out[i], want[i]) {
			t.Fatalf("%s: rank %d has %x, want %x", n.what, i, out[i], want[i])
		}
		if c.Kind != Broadcast && !bytes.Equal(in[i], given[i]) {
			t.Fatalf("%s: rank %d's input was changed", n.what, i)
		}
	}
}
