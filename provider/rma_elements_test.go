package provider

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// counting counts what is sent over a connection.
type counting struct {
	hw.Endpoint
	messages map[hw.AMID]int
	bytes    int // of payloads
}

func (c *counting) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	err := c.Endpoint.AMShort(id, header, head, payload)
	c.count(id, len(payload), err)
	return err
}

func (c *counting) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	err := c.Endpoint.AMBcopy(id, header, head, n, pack, stripe)
	c.count(id, n, err)
	return err
}

func (c *counting) count(id hw.AMID, n int, err error) {
	if err == nil {
		c.messages[id]++
		c.bytes += n
	}
}

// counted has what two sides send each other counted, until the test ends.
func counted(t *testing.T, x, y *side) (there, back *counting) {
	oneMessage(t, x, y, 8)
	oneMessage(t, y, x, 8)
	both := [2]*counting{}
	for i, s := range [2][2]*side{{x, y}, {y, x}} {
		c := &counting{messages: map[hw.AMID]int{}}
		t.Cleanup(over(t, s[0], s[1], func(e hw.Endpoint) hw.Endpoint { c.Endpoint = e; return c }))
		both[i] = c
	}
	return both[0], both[1]
}

// TestListMessages: the elements of a list fill messages, and a request of many is answered once.
func TestListMessages(t *testing.T) {
	for _, size := range []int{1, 100, 4096, 16384, 65000} {
		for _, read := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d read %t", size, read), func(t *testing.T) {
				sides := overUDP(t, 2, nil)
				x, y := sides[0], sides[1]
				const field = 4 << 20
				count := min(field/size/2, 3000)
				remote, local := pattern(field, 3), pattern(field, 5)
				to := x.opens(y.token(y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)))
				l := x.list([]Piece{{
					Local: iovOf(local)[0].Base, LocalStride: uint64(2 * size), Remote: to, Addr: to.Info().Base,
					RemoteStride: uint64(2 * size), Len: uint64(size), Count: uint64(count),
				}})
				there, back := counted(t, x, y)
				post(t, func() error { return l.Post(&ListArgs{Read: read, Context: 1}) }, x, y)
				wantDone(t, x, y, 1, fi.RMA|map[bool]uint64{true: fi.Read, false: fi.Write}[read])
				if !bytes.Equal(local[:2*size*count], remote[:2*size*count]) {
					wantElements(t, local, remote, size, count)
				}
				all := count * (size + wire.ElementBytes)
				requests := there.messages[wire.AMRead] + there.messages[wire.AMWrite]
				answers := back.messages[wire.AMReadData] + back.messages[wire.AMRMADone]
				if most := 2 + all/(32<<10) + count/wire.MaxElements; requests > most || answers > most ||
					!read && answers > 2+all/(128<<10)+count/list.MaxTogether {
					t.Errorf("%d elements are %d messages and %d answers", count, requests, answers)
				}
				if n := there.bytes + back.bytes; n > all {
					t.Errorf("%d bytes of payload for %d elements of %d bytes", n, count, size)
				}
			})
		}
	}
}

// wantElements finds the bytes of each element alike on both sides.
func wantElements(t *testing.T, local, remote []byte, size, count int) {
	t.Helper()
	for i := range count {
		at := 2 * size * i
		if !bytes.Equal(local[at:at+size], remote[at:at+size]) {
			t.Fatalf("element %d is wrong", i)
		}
	}
}

// TestVectorMessages: a read or write of several remote elements is one message, with CQ data, too.
func TestVectorMessages(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	remote, local := pattern(4096, 3), pattern(4096, 5)
	y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	there, back := counted(t, x, y)
	parts := []fi.RMAIOVec{{Addr: 0, Len: 5, Key: 7}, {Addr: 100, Len: 1000, Key: 7}, {Addr: 2000, Len: 3, Key: 7}}
	n := 0
	for _, a := range []RMAArgs{{}, {HasData: true, Data: 9}, {Read: true}} {
		a.IOV, a.Remote, a.Dest = append(iovOf(local[7:500]), iovOf(local[500:1015])...), parts, x.addr[y]
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		wantDone(t, x, y, 0, fi.RMA|map[bool]uint64{true: fi.Read, false: fi.Write}[a.Read])
		if a.HasData {
			if e, bad, ok := settle(t, y, x); !ok || e.Data != 9 || e.Len != 1008 {
				t.Errorf("data: %+v %+v", e, bad)
			}
		}
		whole := append(append(bytes.Clone(remote[:5]), remote[100:1100]...), remote[2000:2003]...)
		if !bytes.Equal(whole, local[7:1015]) {
			t.Errorf("read %t: wrong bytes", a.Read)
		}
		n++
		if sent := there.messages[wire.AMWrite] + there.messages[wire.AMRead]; sent != n {
			t.Errorf("%d operations are %d messages", n, sent)
		}
		if answers := back.messages[wire.AMRMADone] + back.messages[wire.AMReadData]; answers != n {
			t.Errorf("%d operations have %d answers", n, answers)
		}
		clear(local)
	}
}

// TestVectorRefused: of a write of several elements those before the first that is refused are done, of that one and of
// those behind it nothing, and its CQ data does not come.
func TestVectorRefused(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	remote, local := make([]byte, 300), bytes.Repeat([]byte{1}, 300)
	y.region(remote[:150], 7, fi.RemoteRead|fi.RemoteWrite)
	y.region(remote[200:], 8, fi.RemoteWrite)
	parts := []fi.RMAIOVec{{Len: 100, Key: 7}, {Addr: 100, Len: 100, Key: 7}, {Len: 100, Key: 8}}
	for _, a := range []RMAArgs{{}, {HasData: true, Data: 9}, {Read: true}} {
		a.IOV, a.Remote, a.Dest = iovOf(local), parts, x.addr[y]
		lines := logtest.Capture(t, log.Info)
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		if _, e, ok := settle(t, x, y); ok || e.Err != fi.EACCES {
			t.Errorf("read %t: %t, %+v", a.Read, ok, e)
		}
		if said := strings.Join(lines(), "\n"); !strings.Contains(said, "100 bytes at 0x64 with key 0x7") {
			t.Errorf("logged %q", said)
		}
		drain(x, y)
		if n, _ := y.cq.Read(make([]cq.Entry, 1)); n != 0 {
			t.Error("CQ data has come")
		}
		if !bytes.Equal(remote, append(bytes.Repeat([]byte{1}, 100), make([]byte, 200)...)) {
			t.Errorf("read %t: the target has %x", a.Read, remote)
		}
	}
}

// TestListRefusedAt: of a list that is refused somewhere, what is known to be done is all before the first element that
// is, wherever that is in its message and its request.
func TestListRefusedAt(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	const count, size = 1000, 300
	local, remote := bytes.Repeat([]byte{1}, count*size), make([]byte, count*size)
	m := y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	good, gone := x.opens(y.token(m)), y.region(make([]byte, size), 8, fi.RemoteRead|fi.RemoteWrite)
	bad := x.opens(y.token(gone))
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for _, first := range []int{0, 1, 127, 128, 200, 998, 999} {
		var pieces []Piece
		for i := range count {
			p := Piece{Local: iovOf(local[i*size:])[0].Base, Remote: good, Addr: uint64(i * size), Len: size}
			p.Addr += good.Info().Base
			if i == first || i > first && i%100 == 99 {
				p.Remote, p.Addr = bad, bad.Info().Base
			}
			pieces = append(pieces, p)
		}
		l := x.list(pieces)
		for _, read := range []bool{false, true} {
			clear(remote)
			post(t, func() error { return l.Post(&ListArgs{Read: read, Context: 3}) }, x, y)
			_, e, done := settle(t, x, y)
			if done || e.Err != fi.ENOKEY || e.Data != uint64(first) {
				t.Errorf("read %t: done %t, %+v, want element %d", read, done, e, first)
			}
			if done := remote[:first*size]; !read && !bytes.Equal(done, local[:first*size]) {
				t.Errorf("what is before element %d is not done", first)
			}
			if e.Len < uint64(first/wire.MaxElements*wire.MaxElements*size) {
				t.Errorf("read %t: %d bytes are known to be done before element %d", read, e.Len, first)
			}
			copy(local, bytes.Repeat([]byte{1}, len(local)))
		}
	}
}

// TestElementsCounted: elements in one message count one by one at the target, for its endpoint and for their region.
func TestElementsCounted(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	const count, size = 50, 16
	remote, local := make([]byte, count*size), bytes.Repeat([]byte{1}, count*size)
	m := y.region(remote, 7, fi.RemoteWrite)
	of, err := y.domain.OpenCounter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Close()
		_ = of.Close()
	})
	if err := m.BindCounter(of, fi.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	to := x.opens(y.token(m))
	l := x.list([]Piece{{Local: iovOf(local)[0].Base, Remote: to, Addr: to.Info().Base, Len: size, Count: count}})
	served := y.counts("served_writes")
	post(t, func() error { return l.Write(1) }, x, y)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	if n := of.Read(); n != count || y.counts("served_writes")-served != count || x.counts("rma_writes") != count {
		t.Errorf("the region counts %d, the target %d, the initiator %d", n, y.counts("served_writes")-served,
			x.counts("rma_writes"))
	}
	parts := []fi.RMAIOVec{{Len: 8, Key: 7}, {Addr: 8, Len: 8, Key: 7}}
	a := RMAArgs{IOV: iovOf(local[:16]), Remote: parts, Dest: x.addr[y]}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	wantDone(t, x, y, 0, fi.RMA|fi.Write)
	if n := of.Read(); n != count+2 {
		t.Errorf("two elements of a write count as %d", n-count)
	}
}

// TestElementsHostile: messages of elements that do not add up are refused, with a line in the log.
func TestElementsHostile(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	memory := make([]byte, 64)
	y.region(memory, 7, fi.RemoteRead|fi.RemoteWrite)
	oneMessage(t, x, y, 8)
	e := leasedOf(y.ep)
	e.rx.base.acquire()
	defer e.rx.give()
	src := (&transport{Number: 1}).Source(0)
	element := func(n uint64, behind int) []byte {
		b := make([]byte, wire.ElementBytes+behind)
		(&wire.Element{Key: 7, Len: n, Ends: wire.EndsOperation}).Put(b)
		for i := range behind {
			b[wire.ElementBytes+i] = 1
		}
		return b
	}
	var head [wire.WriteDataBytes]byte
	on := e.target.Handlers()
	lines, before := logtest.Capture(t, log.Info), e.malformedHere
	for i, c := range []struct {
		n       uint64
		payload []byte
	}{
		{0, element(8, 8)}, {2, element(8, 8)}, {1, element(8, 7)}, {1, element(8, 9)}, {1, element(9, 8)}, {1, nil},
		{wire.MaxElements + 1, make([]byte, (wire.MaxElements+1)*wire.ElementBytes)}, {^uint64(0), element(8, 8)},
		{1, element(1<<60, 8)},
	} {
		w := wire.Write{Request: 5, Flags: wire.WriteElements | wire.WriteAck}
		on[wire.AMWrite](src, c.n, w.Put(head[:]), c.payload)
		r := wire.Read{Request: 5, Length: 64, Elements: true}
		on[wire.AMRead](src, c.n, r.Put(head[:]), c.payload)
		on[wire.AMNotify](src, 0, w.Put(head[:]), nil)
		if n := e.malformedHere - before; n != uint64(3*(i+1)) {
			t.Errorf("message %d: %d are refused", i, n)
		}
	}
	if !bytes.Equal(memory, make([]byte, 64)) || e.target.Left() != (onesided.TargetLeft{}) {
		t.Errorf("memory %x, left %+v", memory, e.target.Left())
	}
	if said := strings.Join(lines(), "\n"); !strings.Contains(said, "does not parse") {
		t.Errorf("logged %q", said)
	}
}

// TestListAllocations: posting elements allocates for the post, not for each element or message.
func TestListAllocations(t *testing.T) {
	for name, change := range map[string]func(*config.Config){"together": nil, "in segments": flowsEverywhere} {
		t.Run(name, func(t *testing.T) {
			sides := overUDP(t, 2, change)
			x, y := sides[0], sides[1]
			memory := make([]byte, 1<<22)
			to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
			l := x.list(scattered(memory, memory, to, 4096))
			write := func() {
				post(t, func() error { return l.Write(1) }, x, y)
				wantDone(t, x, y, 1, fi.RMA|fi.Write)
			}
			write()
			least := math.Inf(1) // other goroutines allocate, too
			for range 3 {
				least = min(least, testing.AllocsPerRun(5, write))
			}
			if least > float64(l.Len())/4 {
				t.Errorf("%.0f allocations for a list of %d elements", least, l.Len())
			}
		})
	}
}
