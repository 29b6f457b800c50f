package hwtest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// half makes an endpoint that is not joined.
func (n *node) half() hw.Unjoined {
	n.t.Helper()
	e, err := n.Iface.(hw.Connector).NewEndpoint()
	if err != nil {
		n.t.Fatal(err)
	}
	return e
}

// testJoin joins two pairs of endpoints of the same interfaces, beside a
// connection between these.
func testJoin(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	plain := a.connect(b)
	x, y := [2]hw.Unjoined{a.half(), a.half()}, [2]hw.Unjoined{b.half(), b.half()}
	if err := x[0].AMShort(1, 0, nil, nil); !errors.Is(err, hw.ErrNoResource) {
		t.Errorf("a message before the join: %v", err)
	}
	for name, err := range map[string]error{
		"no endpoint's address":   x[0].Join(b.Address(), nil),
		"no interface's address":  x[0].Join([]byte("no address"), y[0].EndpointAddress()),
		"an address of 100 bytes": x[0].Join(b.Address(), make([]byte, 100)),
	} {
		if !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for k := range x {
		if err := errors.Join(x[k].Join(b.Address(), y[k].EndpointAddress()), y[k].Join(a.Address(), x[k].EndpointAddress())); err != nil {
			t.Fatal(err)
		}
	}
	if err := x[0].Join(b.Address(), y[1].EndpointAddress()); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a second join: %v", err)
	}
	sources := map[hw.Source]bool{}
	for n, ep := range []hw.Endpoint{plain, x[0], x[1]} {
		for round := range 3 {
			retry(t, b, func() error { return ep.AMShort(2, uint64(n), []byte("head"), []byte{byte(round)}) })
		}
		for round, m := range b.receive(3) {
			m.check(t, 2, uint64(n), []byte("head"), []byte{byte(round)})
			if !bytes.Equal(b.SourceAddress(m.src), a.Address()) {
				t.Errorf("endpoint %d: the source is %x", n, b.SourceAddress(m.src))
			}
			sources[m.src] = true
		}
	}
	if len(sources) != 3 {
		t.Errorf("messages over 3 endpoints have sources %v", sources)
	}
	for k, ep := range y {
		retry(t, a, func() error { return ep.AMShort(3, uint64(k), nil, nil) })
		m := a.receive(1)[0]
		m.check(t, 3, uint64(k), nil, nil)
	}
	if a.Attr().Caps&hw.CapPutShort != 0 {
		target := make([]byte, 64)
		key := b.key(b.register(target, 0, hw.RemoteWrite))
		retry(t, b, func() error { return x[1].(hw.OneSided).PutShort([]byte("joined"), 8, key) })
		flushed(t, a, b, x[1])
		if !bytes.Equal(target[8:14], []byte("joined")) {
			t.Error("a put over a joined endpoint did not arrive")
		}
	}
	b.Close()
	until(t, "peer events", func() bool {
		a.CheckPeers()
		a.Progress(1)
		return x[0].Err() != nil && x[1].Err() != nil && plain.Err() != nil
	})
	if err := x[1].AMShort(1, 0, nil, nil); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("a message to a peer that has closed: %v", err)
	}
}
