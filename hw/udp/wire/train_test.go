package wire

import (
	"bytes"
	"testing"
)

// train makes n packets of a train with size bytes of the stream each.
func train(h Header, offset uint64, n, size int) (packets [][]byte) {
	t := NewTrain(&h, offset, size)
	for k := range n {
		b := make([]byte, TrainHeader+size)
		t.Put(b, 0)
		for i := range size {
			b[TrainHeader+i] = byte(k*size + i)
		}
		packets = append(packets, b)
	}
	return packets
}

// TestTrain parses the packets of a train one by one, and follows them.
func TestTrain(t *testing.T) {
	h := Header{Stripe: 1, Flags: FlagBlocked, Source: 2, Index: 3, CID: 4, Number: 77}
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
		if err != nil || got != want || len(rest) != 0 || f.Kind != KindStream || f.Offset != 1000+uint64(100*k) || !bytes.Equal(f.Data, b[TrainHeader:]) {
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
	short, data := packets[1][:TrainHeader+99], bytes.Clone(packets[1])
	PutData(data[HeaderSize:], 1, 2, 80)
	if !MayFollow(packets[0], packets[1]) || MayFollow(packets[0], short) || MayFollow(packets[0], data) || MayFollow(packets[0][:TrainHeader], packets[1]) {
		t.Error("what may follow is not told from what may not")
	}
	if _, ok := f.Next(packets[4]); ok {
		t.Error("a packet follows itself")
	}
	last := train(h, 1500, 1, 100)[0]
	end := NewTrain(&Header{Stripe: 1, Flags: FlagBlocked, Source: 2, Index: 3, CID: 4, Number: 82}, 1500, 100)
	end.Put(last, FlagAckNow)
	if _, ok := f.Next(last); ok {
		t.Error("a packet with another flag follows")
	}
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
		rest, err := frame.Next(second[HeaderSize:])
		h.Number = number
		if err != nil || g != h || len(rest) != 0 || frame.Kind != KindStream || frame.Offset != offset || !bytes.Equal(frame.Data, data) {
			t.Errorf("%+v and %+v, frame %+v with %d bytes behind it: %v", h, g, frame, len(rest), err)
		}
	})
}
