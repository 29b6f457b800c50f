package rkey

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// asking is one side of an exchange with itself: its link 3 leads to it, by source 5.
type asking struct {
	*testing.T
	device    Device
	keys      *Peer // of the path, nil: none
	gone      bool  // there is no path
	full      bool  // the path has no room
	regions   map[uint64][]byte
	status    wire.KeyStatus // of regions that have no key
	malformed int
	asked     int
}

func newAsking(t *testing.T) *asking {
	dev, _ := newDevice()
	return &asking{T: t, device: dev, keys: &Peer{}, regions: map[uint64][]byte{}, status: wire.KeyAbsent}
}

func (a *asking) DeviceKeys() *Peer       { return a.keys }
func (a *asking) TransportDevice() Device { return a.device }

func (a *asking) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	if a.full {
		return hw.ErrNoResource
	}
	if id == wire.AMKeyAsk {
		a.asked++
	}
	Handlers(a)[id](5, header, bytes.Clone(head), payload)
	return nil
}

func (a *asking) Back(src hw.Source) (Path, bool)                { return a, src == 5 && !a.gone }
func (a *asking) Owns(src hw.Source, link uint32) bool           { return src == 5 && link == 3 }
func (a *asking) PathOf(src hw.Source, link uint32) (Path, bool) { return a, !a.gone }
func (a *asking) Malformed(hw.Source, string, ...any)            { a.malformed++ }

func (a *asking) Key(_ Path, region uint64, to []byte) ([]byte, wire.KeyStatus) {
	if k := a.regions[region]; k != nil {
		return append(to, k...), wire.KeyHere
	}
	return nil, a.status
}

// find asks for a key if it is time to, and finds it.
func (a *asking) find(region uint64) (found hw.RemoteKey, asked bool) {
	found, _, ask := a.keys.Find(region)
	if ask {
		if Ask(a, region, 3); a.full {
			return found, ask
		}
		found, _, _ = a.keys.Find(region)
	}
	return found, ask
}

// TestExchange asks for keys of regions that are there, are not, and are not for devices.
func TestExchange(t *testing.T) {
	a := newAsking(t)
	key := bytes.Repeat([]byte{1}, 16)
	a.regions[7] = key
	if found, _ := a.find(7); found != (hw.RemoteKey{0x0101010101010101, 0x0101010101010101}) {
		t.Errorf("found %x", found)
	}
	if _, asked := a.find(7); asked {
		t.Error("asked for a key that is known")
	}
	for status, c := range map[wire.KeyStatus]struct {
		why fi.Errno
	}{wire.KeyAbsent: {fi.ENOKEY}, wire.KeyNever: {fi.EOPNOTSUPP}} {
		a.status = status
		region := uint64(100 + status)
		if found, asked := a.find(region); found != (hw.RemoteKey{}) || !asked || a.keys.Refusal(region) != c.why {
			t.Errorf("status %d: %x, asked %t, %v", status, found, asked, a.keys.Refusal(region))
		}
	}
	if a.malformed != 0 || a.asked != 3 {
		t.Errorf("%d messages are malformed, %d questions", a.malformed, a.asked)
	}
}

// TestExchangeBroken: where no answer comes the peer is asked again, at once if it could not be asked.
func TestExchangeBroken(t *testing.T) {
	a := newAsking(t)
	a.regions[7] = bytes.Repeat([]byte{1}, 16)
	a.full = true
	for range 2 {
		if _, asked := a.find(7); !asked {
			t.Fatal("a peer that could not be asked is not asked again")
		}
	}
	a.full, a.gone = false, true
	if found, asked := a.find(7); found != (hw.RemoteKey{}) || !asked {
		t.Errorf("%x without a path, asked %t", found, asked)
	}
	a.gone = false
	for n := range 2 * askAgain {
		if found, asked := a.find(7); found != (hw.RemoteKey{}) {
			if !asked {
				t.Errorf("found at the %d-th time, without a question", n)
			}
			return
		}
	}
	t.Error("not asked again")
}

// TestExchangeForged: what does not parse, is of another link or was not asked for changes nothing.
func TestExchangeForged(t *testing.T) {
	a := newAsking(t)
	a.regions[7] = make([]byte, 16)
	a.regions[7][0] = 1
	answer := func(link uint32, status wire.KeyStatus, key []byte) []byte {
		var b [wire.KeyHeadBytes + MaxKey]byte
		x := wire.KeyAnswer{Link: link, Status: status, Key: key}
		return bytes.Clone(x.Put(b[:]))
	}
	var ask [wire.KeyHeadBytes]byte
	key := bytes.Repeat([]byte{2}, 16)
	a.keys.Find(9) // which is asked for by another
	for what, c := range map[string]struct {
		id        hw.AMID
		src       hw.Source
		head      []byte
		malformed bool
	}{
		"a question that is short":  {wire.AMKeyAsk, 5, ask[:7], true},
		"a question without a path": {wire.AMKeyAsk, 6, wire.PutKeyAsk(ask[:], 3), false},
		"of another link":           {wire.AMKeyAnswer, 5, answer(4, wire.KeyHere, key), true},
		"of another source":         {wire.AMKeyAnswer, 6, answer(3, wire.KeyHere, key), true},
		"of no status":              {wire.AMKeyAnswer, 5, answer(3, 9, nil), true},
		"without the key":           {wire.AMKeyAnswer, 5, answer(3, wire.KeyHere, nil), true},
		"a key that is short":       {wire.AMKeyAnswer, 5, answer(3, wire.KeyHere, key[:8]), true},
		"a key that is none":        {wire.AMKeyAnswer, 5, answer(3, wire.KeyHere, make([]byte, 16)), true},
	} {
		before := a.malformed
		Handlers(a)[c.id](c.src, 9, c.head, nil)
		if (a.malformed != before) != c.malformed {
			t.Errorf("%s: %d malformed", what, a.malformed-before)
		}
		if found, known, _ := a.keys.Find(9); known || a.keys.Refusal(9) != fi.Success {
			t.Errorf("%s: found %x, %v", what, found, a.keys.Refusal(9))
		}
	}
	Handlers(a)[wire.AMKeyAnswer](5, 8, answer(3, wire.KeyHere, key), nil)
	if _, known, _ := a.keys.Find(8); known {
		t.Error("a key is entered that was not asked for")
	}
	a.keys = nil
	Handlers(a)[wire.AMKeyAnswer](5, 9, answer(3, wire.KeyHere, key), nil)
	Handlers(a)[wire.AMKeyAsk](5, 9, wire.PutKeyAsk(ask[:], 3), nil) // answered with KeyNever
}
