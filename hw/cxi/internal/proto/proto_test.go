package proto

import "testing"

func TestNames(t *testing.T) {
	n := Name{NID: 0x12345, PID: 0x5b, VNI: 0x1234}
	b := n.AppendTo(nil)
	// bytes as libfabric's provider has them, on a machine of the lesser end first
	if want := []byte{0x5b, 0x8a, 0x46, 0x02, 0x34, 0x12, 0, 0}; string(b) != string(want) {
		t.Errorf("% x, not % x", b, want)
	}
	if got, ok := ParseName(b, 9); !ok || got != n {
		t.Errorf("%+v, %v", got, ok)
	}
	for name, b := range map[string][]byte{
		"7 bytes": b[:7], "9 bytes": append(append([]byte{}, b...), 0), "all NICs": Name{NID: anyNID,
			PID: 1}.AppendTo(nil),
	} {
		if got, ok := ParseName(b, 9); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, ok := ParseName(b, 6); ok {
		t.Errorf("a PID of seven bits where there are six: %+v", got)
	}
	if got := FromMatchID(0x5b<<23|0x12345, 9, 7); got != (Name{NID: 0x12345, PID: 0x5b, VNI: 7}) {
		t.Errorf("%+v", got)
	}
	if got := FromFabricAddress(0x12345<<12|7<<9|0x5b, 9, 7); got != (Name{NID: 0x12345, PID: 0x5b, VNI: 7}) {
		t.Errorf("%+v", got)
	}
}

// TestRegions: each key has indices that nothing else has, and no match bits of control messages.
func TestRegions(t *testing.T) {
	used := map[uint32]uint64{
		IndexMessages: 1000, IndexControl: 1000, IndexDone: 1000, IndexSource: 1000, IndexRead: 1000,
	}
	for lac := range uint32(LACs) {
		used[IndexRestricted+lac] = 1000
	}
	for key := range uint64(100) {
		r, ok := RegionOf(key)
		if !ok || !r.Own || r.Write != 17+uint32(key) || r.Read != 128+uint32(key) || r.MatchBits != 0 {
			t.Errorf("key %d: %+v", key, r)
		}
		for _, index := range []uint32{r.Write, r.Read} {
			if other, ok := used[index]; ok {
				t.Errorf("index %d is of keys %d and %d", index, key, other)
			}
			used[index] = key
		}
	}
	for _, key := range []uint64{100, 1 << 20, MaxKey} {
		r, ok := RegionOf(key)
		if !ok || r != (Region{Write: 117, Read: 228, MatchBits: key}) {
			t.Errorf("key %d: %+v", key, r)
		}
		if _, _, ok := ControlOf(r.MatchBits); ok {
			t.Errorf("key %d is a control message", key)
		}
	}
	for _, key := range []uint64{0, 99, 100, MaxKey} {
		if r, ok := NotifyOf(key); !ok || r != (Region{Write: 117, Read: 228, MatchBits: key | 1<<59}) {
			t.Errorf("writes with data, key %d: %+v", key, r)
		}
	}
}

// TestKeys holds keys that endpoints choose, as libfabric's provider writes and reads them.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		chosen Chosen
		key    uint64
	}{
		{Chosen{}, 1 << 63},
		{Chosen{ID: 0xffff, Sequence: 1<<43 - 1}, 1<<63 | 1<<59 - 1},
		{Chosen{ID: 5, Sequence: 1, Own: true}, 1<<63 | 1<<61 | 1<<16 | 5},
		{Chosen{ID: 5, Sequence: 1<<43 | 2, Events: true}, 1<<63 | 1<<60 | 2<<16 | 5},
	} {
		if got := c.chosen.Key(); got != c.key || !IsChosen(got) || ChosenID(got) != int(c.chosen.ID) {
			t.Errorf("%+v: %#x, not %#x", c.chosen, got, c.key)
		}
	}
	const top = 1 << 63
	for key, want := range map[uint64]Region{
		top | 7<<16 | 300:              {Write: 117, Read: 228, MatchBits: 7<<16 | 300},
		top | 1<<60 | 7<<16 | 300:      {Write: 117, Read: 228, MatchBits: 1<<60 | 7<<16 | 300, Events: true},
		top | 1<<59 | 300:              {Write: 117, Read: 228, MatchBits: 300},
		top | 1<<61 | 7<<16:            {Write: 25, Read: 136, Own: true},
		top | 1<<61 | 1<<60 | 91:       {Write: 116, Read: 227, Own: true, Events: true},
		top | 1<<62 | 3 | 0x1000<<3:    {Write: 117, Read: 228, MatchBits: 1<<62 | 3 | 0x1000<<3, Offset: 0x1000},
		top | 3<<61 | 7 | (1<<58-1)<<3: {Write: 24, Read: 135, Own: true, Offset: 1<<58 - 1},
		top | 1<<62 | 1<<60 | 5 | 1<<3: {Write: 117, Read: 228, MatchBits: 1<<62 | 1<<60 | 5 | 1<<3, Offset: 1<<57 | 1},
	} {
		if r, ok := RegionOf(key); !ok || r != want {
			t.Errorf("%#x: %+v, not %+v", key, r, want)
		}
	}
	for _, key := range []uint64{1 << 32, 1 << 62, top - 1, top | 1<<61 | 92, top | 1<<61 | 0xffff} {
		if r, ok := RegionOf(key); ok {
			t.Errorf("%#x: %+v", key, r)
		}
	}
	if r, ok := NotifyOf(top | 7<<16 | 300); !ok || r != (Region{Write: 117, Read: 228,
		MatchBits: 3<<59 | 7<<16 | 300}) {
		t.Errorf("writes with data: %+v", r)
	}
	for _, key := range []uint64{1 << 32, top | 1<<61, top | 1<<62, top | 3<<61} {
		if r, ok := NotifyOf(key); ok {
			t.Errorf("writes with data under %#x: %+v", key, r)
		}
	}
}

// FuzzKeys: a key leads to indices and match bits of regions, never to those of messages, control messages or data of
// rendezvous.
func FuzzKeys(f *testing.F) {
	for _, key := range []uint64{0, 99, 100, MaxKey, 1 << 63, ^uint64(0), 1<<63 | 1<<61 | 91} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key uint64) {
		r, ok := RegionOf(key)
		if !ok {
			return
		}
		own := r.Write >= 17 && r.Write < 117 && r.Read == r.Write+111 && r.MatchBits == 0
		if r.Own != own || !own && (r.Write != 117 || r.Read != 228) || r.MatchBits>>63 != 0 {
			t.Errorf("%#x: %+v", key, r)
		}
		if IsChosen(key) && key>>62&1 == 0 {
			c := Chosen{ID: uint32(ChosenID(key)), Sequence: key >> 16, Own: r.Own, Events: r.Events}
			if c.Key() != key&^(1<<59) {
				t.Errorf("%#x becomes %#x", key, c.Key())
			}
		}
		if n, ok := NotifyOf(key); ok && (n.Own || n.Write != 117 || n.MatchBits>>59&1 != 1 || n.MatchBits>>63 != 0) {
			t.Errorf("%#x: %+v", key, n)
		}
	})
}

// TestBits writes each field alone.
func TestBits(t *testing.T) {
	ones := uint64(1<<64 - 1)
	for name, c := range map[string]struct{ got, want uint64 }{
		"tag":         {Message{Tag: ones, Tagged: true}.Bits(), 1<<60 | 1<<48 - 1},
		"tag of none": {Message{Tag: ones}.Bits(), 0},
		"data":        {Message{Data: true}.Bits(), 1 << 59},
		"awaited":     {Message{}.BitsMatched(0x7ff), 1<<61 | 0x7ff<<48},
		"high id":     {Rendezvous{ID: 0x7f00}.Bits(Message{}), 0x7f << 48},
		"low id":      {uint64(Rendezvous{ID: 0x7fab}.Low()), 0xab},
		"LAC":         {Rendezvous{LAC: 7}.Bits(Message{}), 7 << 55},
		"protocol":    {Rendezvous{Protocol: ProtocolRestricted}.Bits(Message{}), 1 << 61},
		"source":      {Rendezvous{ID: 0x7fab, LAC: 5, Protocol: ProtocolRestricted}.Source(), 0xab | 0x7f<<48 | 5<<55},
		"done":        {Rendezvous{ID: 0x12ab, LAC: 5}.Done(), 0xab | 0x12<<48 | 3<<62},
		"matched":     {Matched(0x7ff), 0x7ff<<48 | 1<<63},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, not %#x", name, c.got, c.want)
		}
	}
	if b, ignored := Receive(5, 1<<4, true); b != 5|1<<60 || ignored != 0xefff<<48|1<<4 {
		t.Errorf("receive: %#x, %#x", b, ignored)
	}
	if b, ignored := Receive(5, 1<<4, false); b != 0 || ignored != 0xefff<<48 {
		t.Errorf("receive without a tag: %#x, %#x", b, ignored)
	}
	if b, ignored := SourceEntry(5); b != 5<<55 || ignored != ^uint64(15<<55) {
		t.Errorf("source entry: %#x, %#x", b, ignored)
	}
	if b, ignored := NoticeEntry(); b != 1<<63 || ignored != 1<<63-1 {
		t.Errorf("entry for notices: %#x, %#x", b, ignored)
	}
	for _, c := range []struct{ lac, protocol uint64 }{{8, 0}, {15, 0}, {0, 2}, {0, 3}} {
		if r, ok := RendezvousOf(c.lac<<55|c.protocol<<61, 0); ok {
			t.Errorf("%+v", r)
		}
	}
}

// FuzzBits: what any bits say stays in its range, and comes out again of what is made of it.
func FuzzBits(f *testing.F) {
	f.Add(uint64(0), uint32(0), uint64(0))
	f.Add(^uint64(0), ^uint32(0), ^uint64(0))
	f.Add(uint64(1<<61|3<<48), uint32(200), uint64(0x5b|0x12345<<9))
	f.Fuzz(func(t *testing.T, bits uint64, low uint32, word uint64) {
		m := MessageOf(bits)
		if m.Tag > TagMask || MessageOf(m.Bits()).Data != m.Data || m.Tagged && MessageOf(m.Bits()) != m {
			t.Errorf("%#x: %+v", bits, m)
		}
		if id, ok := Awaits(bits); id >= TxIDs || ok && m.Tagged && bits&doneBit == 0 && m.BitsMatched(id) != bits {
			t.Errorf("%#x: awaits %d, %v", bits, id, ok)
		}
		r, ok := RendezvousOf(bits, low)
		if r.ID >= RendezvousIDs || ok && (r.LAC >= LACs || r.Protocol > ProtocolRestricted) {
			t.Errorf("%#x: %+v", bits, r)
		}
		if got, again := RendezvousOf(r.Bits(m), r.Low()); again != ok || got != r {
			t.Errorf("%+v became %+v", r, got)
		}
		if SourceID(r.Source()) != r.ID || SourceID(bits) >= RendezvousIDs {
			t.Errorf("%+v is got as %d", r, SourceID(r.Source()))
		}
		if id, done, ok := NoticeOf(r.Done()); !ok || !done || id != r.ID {
			t.Errorf("%+v: notice of %d", r, id)
		}
		if id, done, ok := NoticeOf(bits); ok && (done && id >= RendezvousIDs || !done && id >= TxIDs) ||
			ok != (bits>>63 != 0) {
			t.Errorf("%#x: notice of %d", bits, id)
		}
		if n, ok := NameOf(word, 9); ok {
			if again, ok := NameOf(n.Word(), 9); !ok || again != n {
				t.Errorf("%#x: %+v became %+v", word, n, again)
			}
		}
	})
}

// FuzzNames: a name that is read is one of the fabric, comes out of its word again, and is who a match id or a fabric
// address of it names.
func FuzzNames(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint8(3))
	f.Add([]byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, bits uint8) {
		pidBits := 6 + uint32(bits%4)
		n, ok := ParseName(b, pidBits)
		if !ok {
			return
		}
		if len(b) != NameBytes || n.NID >= anyNID || n.PID>>pidBits != 0 {
			t.Errorf("% x: %+v", b, n)
		}
		if got, ok := ParseName(n.AppendTo(nil), pidBits); !ok || got != n {
			t.Errorf("% x: %+v becomes %+v", b, n, got)
		}
		if got, ok := NameOf(n.Word(), pidBits); !ok || got != n {
			t.Errorf("% x: %+v becomes %+v by its word", b, n, got)
		}
		if got := FromMatchID(n.PID<<(32-pidBits)|n.NID, pidBits, n.VNI); got != n {
			t.Errorf("% x: match id of %+v names %+v", b, n, got)
		}
		if got := FromFabricAddress(n.NID<<12|n.PID, pidBits, n.VNI); got != n {
			t.Errorf("% x: fabric address of %+v names %+v", b, n, got)
		}
	})
}
