package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/internal/sock"
)

func side(seed uint64) Side {
	s := Side{Stripe: 3, CID: CID(seed * 0x9E3779B97F4A7C15), Window: 1 << 18, MaxPacket: 1500, MaxMessage: 9000,
		Buffer: 22}
	for i := range s.Nonce {
		s.Nonce[i] = byte(seed) + byte(i)
	}
	return s
}

func TestHandshakeRoundTrip(t *testing.T) {
	var b [InitSize]byte
	in := Init{Auth: true, Steer: 9, HasCookie: true, Wanted: 7, Client: side(1), Role: Role{Port: 700, Number: 65},
		Cookie: [CookieSize]byte{1, 31: 2}, MAC: [TagSize]byte{5, 15: 6}}
	in.Put(b[:])
	var gotInit Init
	if err := gotInit.Parse(b[:]); err != nil || gotInit != in {
		t.Errorf("init: %v\n%s", err, cmp.Diff(in, gotInit))
	}
	reply := Reply{Auth: true, Stripe: 4, CID: 6, Nonce: in.Client.Nonce, MAC: in.MAC}
	retry := Retry{Reply: reply, Cookie: in.Cookie}
	retry.Put(b[:])
	var gotRetry Retry
	if err := gotRetry.Parse(b[:RetrySize]); err != nil || gotRetry != retry {
		t.Errorf("retry: %v\n%s", err, cmp.Diff(retry, gotRetry))
	}
	moved := Moved{Reply: reply, Port: 800}
	moved.Put(b[:])
	var gotMoved Moved
	if err := gotMoved.Parse(b[:MovedSize]); err != nil || gotMoved != moved {
		t.Errorf("moved: %v\n%s", err, cmp.Diff(moved, gotMoved))
	}
	accept := Accept{Reply: reply, Server: side(2)}
	accept.Put(b[:])
	var gotAccept Accept
	if err := gotAccept.Parse(b[:AcceptSize]); err != nil || gotAccept != accept {
		t.Errorf("accept: %v\n%s", err, cmp.Diff(accept, gotAccept))
	}
	if sock.StripeByte != 1 || b[sock.StripeByte] != 4 {
		t.Error("the stripe is not where steering polls")
	}
}

// TestNoAmplification holds answers to the size of what provokes them.
func TestNoAmplification(t *testing.T) {
	if RetrySize > InitSize || MovedSize > InitSize || AcceptSize > InitSize || ResetSize > HeaderSize {
		t.Error("an answer is longer than its question")
	}
}

func TestCID(t *testing.T) {
	for _, index := range []uint32{0, 1, MaxConnections - 1} {
		for _, random := range []uint64{0, 1, MaxConnections, 1<<64 - 1, 0x0123456789ABCDEF} {
			id := NewCID(index, random)
			if id.Index() != index || uint64(id)/MaxConnections != random/MaxConnections {
				t.Errorf("index %d, random %#x: %#x of index %d", index, random, id, id.Index())
			}
		}
	}
}

func TestHeaderAndReset(t *testing.T) {
	h := Header{Stripe: 1, Flags: FlagAckNow | FlagAuth, Source: 2, CID: 4, Number: 1<<32 - 1}
	b := make([]byte, HeaderSize)
	h.Put(b)
	var got Header
	if err := got.Parse(b); err != nil || got != h || TypeOf(b) != TypeData {
		t.Errorf("%+v, %v", got, err)
	}
	h.PutReset(b)
	want := h
	want.Stripe, want.Source, want.Flags = 2, 1, 0
	if err := got.Parse(b); err != nil || got != want || TypeOf(b) != TypeReset {
		t.Errorf("%+v, %v", got, err)
	}
	h.Number = 1 << 40
	h.Put(b)
	if err := got.Parse(b); err != nil || got.Number != 0 || Near(got.Number, 1<<40+5) != h.Number {
		t.Errorf("a long number: %+v, %v", got, err)
	}
	b[2] = 0x80
	if err := got.Parse(b); !errors.Is(err, ErrMalformed) {
		t.Errorf("an unknown flag: %v", err)
	}
}

// TestNear has every number that is less than 2^31 away found from its lower half.
func TestNear(t *testing.T) {
	const far = 1<<31 - 1
	for _, v := range []uint64{0, 1, far, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 5 << 31, 1<<40 - 1, MaxNumber - 1} {
		for _, near := range []uint64{v, v + 1, v + far, v - min(v, 1), v - min(v, far)} {
			if got := Near(v&(1<<32-1), near); got != v {
				t.Errorf("%#x near %#x: %#x", v, near, got)
			}
		}
	}
}

// TestAckRoundTrip writes and reads random acknowledgements.
func TestAckRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		a := Ack{
			Arrived: r.Uint32(), Delay: time.Duration(r.Uint32()), Limit: r.Uint64N(MaxOffset) * r.Uint64N(2),
			Marked: r.Uint32() * r.Uint32N(2), Open: r.IntN(2) == 0, N: 1 + r.IntN(MaxRanges),
		}
		next := uint64(MaxNumber)
		at, long := next-1-r.Uint64N(1<<31), uint64(1<<16)
		for i := range a.N {
			first := at - r.Uint64N(long)
			a.Ranges[i] = Range{first, at}
			at, long = first-2-r.Uint64N(1<<32), 1<<32
		}
		b := make([]byte, a.Size()+3)
		if n := a.Put(b); n != a.Size() {
			t.Fatalf("%d bytes", n)
		}
		f := Frame{NearNumber: next, NearLimit: a.Limit - min(a.Limit, r.Uint64N(1<<31))}
		rest, err := f.Next(b)
		if err != nil || len(rest) != 3 || f.Kind != KindAck || f.Ack != a {
			t.Fatalf("%v\n%s", err, cmp.Diff(a, f.Ack))
		}
	}
}

// TestAckLongFirst: of a first range that is longer than an Ack can say, the end is notified.
func TestAckLongFirst(t *testing.T) {
	a := Ack{N: 2, Ranges: [MaxRanges]Range{{100, 100_000}, {50, 60}}}
	b := make([]byte, a.Size())
	a.Put(b)
	f := Frame{NearNumber: 100_001}
	_, err := f.Next(b)
	if want := [2]Range{{100_000 - 65_535, 100_000}, {50, 60}}; err != nil || [2]Range(f.Ack.Ranges[:2]) != want {
		t.Errorf("%v, %v", f.Ack.Ranges[:2], err)
	}
}

func TestFrames(t *testing.T) {
	var b [100]byte
	PutPing(b[:])
	at := PingSize
	PutClose(b[at:], CloseStuck, 99)
	at += CloseSize
	stream := append(bytes.Clone(b[:at]), make([]byte, StreamHeader)...)
	PutStream(stream[at:], 7)
	stream = append(stream, "hello"...)
	var f Frame
	rest, err := f.Next(b[:])
	if err != nil || f.Kind != KindPing {
		t.Fatalf("%+v, %v", f, err)
	}
	if rest, err = f.Next(rest); err != nil || f.Kind != KindClose || f.Reason != CloseStuck || f.Offset != 99 {
		t.Fatalf("%+v, %v", f, err)
	}
	if rest, err = f.Next(rest); err != nil || f.Kind != KindPad || len(rest) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	if rest, err = f.Next(stream[at:]); err != nil || f.Kind != KindStream || f.Offset != 7 ||
		string(f.Data) != "hello" || len(rest) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
}

func TestProbeFrame(t *testing.T) {
	b := make([]byte, ProbeHeader+3+PingSize)
	PutProbe(b, 3)
	copy(b[ProbeHeader:], "abc")
	PutPing(b[ProbeHeader+3:])
	var f Frame
	rest, err := f.Next(b)
	if err != nil || f.Kind != KindProbe || string(f.Data) != "abc" || len(rest) != PingSize {
		t.Fatalf("%+v, %v", f, err)
	}
	for n := range ProbeHeader + 3 {
		if _, err := f.Next(b[:n]); n > 0 && !errors.Is(err, ErrMalformed) {
			t.Errorf("%d bytes of a probe: %v", n, err)
		}
	}
	PutProbe(b, 0)
	if _, err := f.Next(b); !errors.Is(err, ErrMalformed) {
		t.Errorf("an empty probe: %v", err)
	}
}

func TestRefused(t *testing.T) {
	empty := make([]byte, StreamHeader)
	PutStream(empty, 0)
	far := make([]byte, StreamHeader+4)
	PutStream(far, MaxOffset-4)
	farther := Frame{NearOffset: MaxOffset}
	below := make([]byte, (&Ack{N: 2}).Size())
	(&Ack{N: 1, Ranges: [MaxRanges]Range{{5, 6}}}).Put(below)
	below[1], below[ackHeader] = 1, 4 // a gap of 6 below 5
	if _, err := farther.Next(far); !errors.Is(err, ErrMalformed) {
		t.Errorf("offset: %v", err)
	}
	for name, b := range map[string][]byte{
		"nothing": {}, "unknown kind": {77, 0, 0, 0}, "short ping": {byte(KindPing)},
		"short close":  {byte(KindClose), 0},
		"short stream": empty[:2], "empty stream": empty, "short ack": {byte(KindAck), 1},
		"no ranges": make([]byte, 0), "range below 0": below,
	} {
		var f Frame
		if _, err := f.Next(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneSidedFrames(t *testing.T) {
	b := make([]byte, PutHeader+3+GetSize+DataHeader+2+RefuseSize)
	PutPut(b, 1, 2, 3, 3)
	copy(b[PutHeader:], "abc")
	at := PutHeader + 3
	PutGet(b[at:], 4, 5, 6, 7)
	at += GetSize
	PutData(b[at:], 8, 9, 2)
	copy(b[at+DataHeader:], "de")
	at += DataHeader + 2
	PutRefuse(b[at:], 10, RefuseKey)
	var f Frame
	rest, err := f.Next(b)
	if err != nil || f.Kind != KindPut || f.Op != 1 || f.Key != 2 || f.Addr != 3 || string(f.Data) != "abc" {
		t.Fatalf("%+v, %v", f, err)
	}
	rest, err = f.Next(rest)
	if err != nil || f.Kind != KindGet || f.Op != 4 || f.Key != 5 || f.Addr != 6 || f.Len != 7 {
		t.Fatalf("%+v, %v", f, err)
	}
	rest, err = f.Next(rest)
	if err != nil || f.Kind != KindData || f.Op != 8 || f.Offset != 9 || string(f.Data) != "de" {
		t.Fatalf("%+v, %v", f, err)
	}
	rest, err = f.Next(rest)
	if err != nil || f.Kind != KindRefuse || f.Op != 10 || f.Reason != RefuseKey || len(rest) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
}

// FuzzPacket parses arbitrary bytes as every kind of packet; what parses must
// come out the same when it is written again.
func FuzzPacket(f *testing.F) {
	var b [InitSize]byte
	(&Init{Client: side(1)}).Put(b[:])
	f.Add(bytes.Clone(b[:]))
	(&Retry{}).Put(b[:])
	f.Add(bytes.Clone(b[:RetrySize]))
	(&Moved{Port: 1}).Put(b[:])
	f.Add(bytes.Clone(b[:MovedSize]))
	(&Accept{Server: side(1)}).Put(b[:])
	f.Add(bytes.Clone(b[:]))
	data := make([]byte, 200)
	(&Header{Number: 5}).Put(data)
	n := HeaderSize + (&Ack{N: 2, Ranges: [MaxRanges]Range{{8, 9}, {1, 2}}}).Put(data[HeaderSize:])
	PutStream(data[n:], 3)
	f.Add(data)
	probe := make([]byte, HeaderSize+ProbeHeader+40)
	(&Header{Number: 6}).Put(probe)
	PutProbe(probe[HeaderSize:], 40)
	f.Add(probe)
	f.Fuzz(func(t *testing.T, b []byte) {
		var out [InitSize]byte
		var in Init
		if in.Parse(b) == nil {
			again := Init{}
			if in.Put(out[:]); again.Parse(out[:InitSize]) != nil || again != in {
				t.Errorf("init %+v", in)
			}
		}
		var retry Retry
		if retry.Parse(b) == nil {
			again := Retry{}
			if retry.Put(out[:]); again.Parse(out[:RetrySize]) != nil || again != retry {
				t.Errorf("retry %+v", retry)
			}
		}
		var moved Moved
		if moved.Parse(b) == nil {
			again := Moved{}
			if moved.Put(out[:]); again.Parse(out[:MovedSize]) != nil || again != moved {
				t.Errorf("moved %+v", moved)
			}
		}
		var accept Accept
		if accept.Parse(b) == nil {
			again := Accept{}
			if accept.Put(out[:]); again.Parse(out[:AcceptSize]) != nil || again != accept {
				t.Errorf("accept %+v", accept)
			}
		}
		var h Header
		if h.Parse(b) == nil {
			checkFrames(t, b[HeaderSize:])
		}
	})
}

func checkFrames(t *testing.T, b []byte) {
	var f Frame
	for len(b) > 0 {
		rest, err := f.Next(b)
		if err != nil {
			return
		}
		if len(rest) >= len(b) {
			t.Fatal("a frame takes nothing")
		}
		if f.Kind == KindAck {
			clear(f.Ack.Ranges[f.Ack.N:]) // of an Ack before
			buf := make([]byte, f.Ack.Size())
			again := Frame{NearNumber: f.NearNumber, NearLimit: f.NearLimit}
			f.Ack.Put(buf)
			if _, err := again.Next(buf); err != nil || again.Ack != f.Ack {
				t.Errorf("ack %+v: %v", f.Ack, err)
			}
			for i := 1; i < f.Ack.N; i++ {
				if r := f.Ack.Ranges[i]; r.First > r.Last || r.Last+1 >= f.Ack.Ranges[i-1].First {
					t.Errorf("ranges %v", f.Ack.Ranges[:f.Ack.N])
				}
			}
		}
		b = rest
	}
}
