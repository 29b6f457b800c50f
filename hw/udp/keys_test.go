package udp

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestSeveralKeys: an interface with several keys reaches, and is reached by, whatever has
// one of them, and knows under which. Two that share two keys have a connection for each.
func TestSeveralKeys(t *testing.T) {
	hub := open(t, false,
		Config{Keys: []hw.Key{{Number: 3, Secret: []byte("one")}, {Number: 9, Secret: []byte("two")}}})
	one, other := open(t, false, Config{Key: []byte("one")}), open(t, false, Config{Key: []byte("three")})
	both := open(t, false,
		Config{Keys: []hw.Key{{Number: 1, Secret: []byte("two")}, {Number: 2, Secret: []byte("one")}}})
	under := func(i *Iface, key uint8) []byte { return hw.AppendKey(append(i.Address(), 0, 0, 0, 0), key) }
	var got []string
	hub.SetHandler(1, func(src hw.Source, header uint64, head, payload []byte) {
		got = append(got, string(hub.SourceAddress(src)))
		if !hub.SourceReaches(src, hub.SourceAddress(src)) {
			t.Error("the source is not reached at its address")
		}
	})
	connect := func(from *Iface, to []byte, patience time.Duration) (e hw.Endpoint, err error) {
		for end := time.Now().Add(patience); ; {
			if e, err = from.Connect(to); err == nil || !errors.Is(err, hw.ErrUnreachable) || time.Now().After(end) {
				return e, err
			}
			for _, i := range []*Iface{hub, one, other, both} {
				i.Progress(10)
			}
		}
	}
	for name, c := range map[string]struct {
		from       *Iface
		to, source []byte
	}{
		"one":        {one, hub.Address(), under(one, 3)},
		"both, two":  {both, under(hub, 1), under(both, 9)},
		"both, one":  {both, under(hub, 2), under(both, 3)},
		"to oneself": {hub, under(hub, 9), under(hub, 9)},
	} {
		e, err := connect(c.from, c.to, 10*time.Second)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if string(e.Address()) != string(c.to) {
			t.Errorf("%s: the peer is at %x", name, e.Address())
		}
		got = nil
		for end := time.Now().Add(10 * time.Second); len(got) == 0 && time.Now().Before(end); {
			if e.AMShort(1, 0, nil, nil) == nil {
				for end := time.Now().Add(10 * time.Second); len(got) == 0 && time.Now().Before(end); {
					hub.Progress(10)
					c.from.Progress(10)
				}
			}
		}
		if len(got) != 1 || got[0] != string(c.source) {
			t.Errorf("%s: from %x, want %x", name, got, c.source)
		}
	}
	if _, err := connect(other, hub.Address(), 200*time.Millisecond); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect with another key: %v", err)
	}
	if _, err := connect(both, under(hub, 3), 10*time.Second); !errors.Is(err, hw.ErrPermission) {
		t.Errorf("connect under a key that is not there: %v", err)
	}
	if _, err := connect(both, hub.Address(), 10*time.Second); !errors.Is(err, hw.ErrPermission) {
		t.Errorf("connect without a key: %v", err)
	}
}
