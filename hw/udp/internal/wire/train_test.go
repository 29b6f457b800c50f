package wire

import (
	"bytes"
	"math"
	"testing"
)

// train makes n packets of a train with size bytes of the stream each.
func train(h Header, offset uint64, n, size int) (packets [][]byte) {
	t, each := NewTrain(&h, offset, size), TrainHeader+size
	row := make([]byte, n*each)
	t.PutRow(row[:each], 0)
	t.PutRow(row[each:], 0)
	for k := range n {
		b := row[k*each:][:each:each]
		for i := range size {
			b[TrainHeader+i] = byte(k*size + i)
		}
		packets = append(packets, b)
	}
	return packets
}

// TestTrain parses the packets of a train one by one, and follows them.
func TestTrain(t *testing.T) {
	h := Header{Stripe: 1, Flags: FlagBlocked, Source: 2, CID: 4, Number: 77}
	packets := train(h, 1000, 5, 100)
	for k, b := range packets {
		var got Header
		var f Frame
		if err := got.Parse(b); err != nil {
			t.Fatal(err)
		}
		want := h
		want.Number += uint64(k)
		rest, err := f.Next(b[HeaderSize:])
		if err != nil || got != want || len(rest) != 0 || f.Kind != KindStream || f.Offset != 1000+uint64(100*k) ||
			!bytes.Equal(f.Data, b[TrainHeader:]) {
			t.Errorf("packet %d: %+v, %+v, %v", k, got, f, err)
		}
	}
	var f Train
	if !f.Follow(packets[0], 78, 1100) {
		t.Fatal("no train follows")
	}
	for k, b := range packets[1:] {
		if data, ok := f.Next(b); !ok || !bytes.Equal(data, b[TrainHeader:]) {
			t.Errorf("packet %d does not follow", k+1)
		}
	}
	short, ping := packets[1][:TrainHeader+99], bytes.Clone(packets[1])
	PutPing(ping[HeaderSize:])
	if !MayFollow(packets[0], packets[1]) || MayFollow(packets[0], short) || MayFollow(packets[0], ping) ||
		MayFollow(packets[0][:TrainHeader], packets[1]) {
		t.Error("what may follow is not notified from what may not")
	}
	if _, ok := f.Next(packets[4]); ok {
		t.Error("a packet follows itself")
	}
	last := train(h, 1500, 1, 100)[0]
	end := NewTrain(&Header{Stripe: 1, Flags: FlagBlocked, Source: 2, CID: 4, Number: 82}, 1500, 100)
	end.PutRow(last, FlagAckNow)
	if _, ok := f.Next(last); ok || last[2] != FlagBlocked|FlagAckNow {
		t.Errorf("a packet with flags %#x follows", last[2])
	}
}

// TestTrainWraps has numbers and offsets of a train pass what 32 bits hold.
func TestTrainWraps(t *testing.T) {
	h, offset := Header{CID: 4, Number: 1<<32 - 2}, uint64(3<<32-150)
	packets := train(h, offset, 5, 100)
	var f Train
	if !f.Follow(packets[0], h.Number+1, offset+100) {
		t.Fatal("no train follows")
	}
	for k, b := range packets[1:] {
		at := offset + uint64(100*(k+1))
		frame := Frame{NearOffset: offset}
		if _, err := frame.Next(b[HeaderSize:]); err != nil || frame.Offset != at {
			t.Errorf("packet %d is at %#x, not %#x: %v", k+1, frame.Offset, at, err)
		}
		if f.Place() != at {
			t.Errorf("packet %d is expected at %#x, not %#x", k+1, f.Place(), at)
		}
		if data, ok := f.Next(b); !ok || !bytes.Equal(data, b[TrainHeader:]) {
			t.Errorf("packet %d does not follow", k+1)
		}
	}
}

// pieces makes n packets of a train of a put or a get, with size bytes each.
func pieces(h Header, put bool, n, size int) (packets [][]byte) {
	t := NewDataTrain(&h, 5, 1000, size)
	if put {
		t = NewPutTrain(&h, 5, 6, 1000, size)
	}
	for k := range n {
		b := make([]byte, t.HeadSize()+size)
		t.Put(b[:t.HeadSize()], 0)
		for i := range size {
			b[t.HeadSize()+i] = byte(k*size + i)
		}
		packets = append(packets, b)
	}
	return packets
}

// TestPieces parses the packets of trains of puts and gets one by one, and follows them.
func TestPieces(t *testing.T) {
	h := Header{Stripe: 1, Source: 2, CID: 4, Number: 77}
	for _, put := range []bool{false, true} {
		packets := pieces(h, put, 5, 100)
		for k, b := range packets {
			var f Frame
			rest, err := f.Next(b[HeaderSize:])
			place := f.Offset
			if put {
				place = f.Addr
			}
			if err != nil || len(rest) != 0 || f.Op != 5 || place != 1000+uint64(100*k) || put != (f.Kind == KindPut) ||
				put && f.Key != 6 || len(f.Data) != 100 {
				t.Errorf("packet %d: %+v, %v", k, f, err)
			}
		}
		var f Train
		if !f.FollowPiece(packets[0]) || !MayFollow(packets[0], packets[1]) {
			t.Fatal("no train follows")
		}
		if f.Op() != 5 || f.Place() != 1100 || f.Len() != 100 || put && (f.Kind() != KindPut || f.Key() != 6) || !put &&
			f.Kind() != KindData {
			t.Errorf("%+v", f)
		}
		all := bytes.Join(packets[1:], nil)
		if n := f.Count(all); n != 4 {
			t.Fatalf("%d of 4 follow", n)
		}
		if n := f.Count(all[:len(all)-1]); n != 3 {
			t.Errorf("%d of 3 whole ones follow", n)
		}
		for k, rest := 1, all; k < 5; k++ {
			if data := f.Skip(&rest); !bytes.Equal(data, packets[k][f.HeadSize():]) {
				t.Errorf("packet %d is not the next", k)
			}
			if at := len(all) - k*len(packets[0]); len(rest) != at {
				t.Errorf("%d bytes are left, not %d", len(rest), at)
			}
			all := bytes.Clone(all)
			all[k*len(packets[0])-100-1]++ // its place
			if n := f.Count(all); n != k-1 {
				t.Errorf("%d packets before one elsewhere, not %d", n, k-1)
			}
		}
		for name, b := range map[string][]byte{
			"stream":   train(h, 1000, 1, 100)[0],
			"two":      append(bytes.Clone(packets[0]), packets[0][HeaderSize:]...),
			"cut":      packets[0][:len(packets[0])-1],
			"no bytes": pieces(h, put, 1, 0)[0],
		} {
			if f.FollowPiece(b) {
				t.Errorf("%s: a train follows", name)
			}
		}
	}
}

// FuzzPieces has whatever a train of a put or a get takes be what parsing makes of it.
func FuzzPieces(f *testing.F) {
	for _, put := range []bool{false, true} {
		p := pieces(Header{CID: 4, Number: 77}, put, 3, 20)
		f.Add(p[0], bytes.Join(p[1:], nil))
	}
	f.Fuzz(func(t *testing.T, first, rest []byte) {
		var train Train
		if !train.FollowPiece(first) {
			return
		}
		var h, g Header
		var one, frame Frame
		if _, err := one.Next(first[HeaderSize:]); err != nil || h.Parse(first) != nil {
			t.Fatal("the first does not parse")
		}
		for n := range train.Count(rest) {
			b := rest[:len(first)]
			data := train.Skip(&rest)
			left, err := frame.Next(b[HeaderSize:])
			h.Number = (h.Number + 1) & math.MaxUint32
			if err != nil || g.Parse(b) != nil || g != h || len(left) != 0 || frame.Kind != one.Kind ||
				frame.Op != one.Op || frame.Key != one.Key ||
				frame.Offset+frame.Addr != one.Offset+one.Addr+uint64((n+1)*len(data)) ||
				!bytes.Equal(frame.Data, data) {
				t.Fatalf("%+v and %+v, frame %+v behind %+v: %v", h, g, frame, one, err)
			}
		}
	})
}

// FuzzTrain has whatever a train takes be what parsing makes of it.
func FuzzTrain(f *testing.F) {
	p := train(Header{CID: 4, Number: 77}, 1000, 2, 20)
	f.Add(p[0], p[1], uint64(78), uint64(1020))
	f.Fuzz(func(t *testing.T, first, second []byte, number, offset uint64) {
		var train Train
		if !train.Follow(first, number, offset) {
			return
		}
		data, ok := train.Next(second)
		if !ok {
			return
		}
		if !MayFollow(first, second) {
			t.Error("it may not follow, but does")
		}
		var h, g Header
		var frame Frame
		if h.Parse(first) != nil || g.Parse(second) != nil {
			t.Fatal("a header does not parse")
		}
		frame.NearOffset = offset
		rest, err := frame.Next(second[HeaderSize:])
		h.Number = number & math.MaxUint32
		if err != nil || g != h || len(rest) != 0 || frame.Kind != KindStream || frame.Offset != offset ||
			!bytes.Equal(frame.Data, data) {
			t.Errorf("%+v and %+v, frame %+v with %d bytes behind it: %v", h, g, frame, len(rest), err)
		}
	})
}
