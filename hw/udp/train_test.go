package udp

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/nettest"
	"github.com/weft-fabric/weft/internal/sock"
)

// joiner stands between two interfaces. It keeps the packets to one of them and
// hands them over in messages as a kernel makes them that joins datagrams (UDP_GRO).
type joiner struct {
	r                  *rand.Rand
	loss, double, swap float64

	mu   sync.Mutex // guards all but the counts: timer loops send, too
	to   *Iface
	from sock.Addr
	kept [][]byte

	byTrains int // bytes that handleTrain took
	others   int
}

// between has what goes from a to b kept from now on.
func (j *joiner) between(a, b *Iface) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.to, j.from = b, a.name
}

// take returns what was kept.
func (j *joiner) take() [][]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.kept
	j.kept = nil
	return list
}

// impair is a sock.Impairment.
func (j *joiner) impair(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.to == nil || *to != j.to.name || wire.TypeOf(b) != wire.TypeData {
		send(b, to)
		return
	}
	if j.r.Float64() >= j.loss {
		j.kept = append(j.kept, bytes.Clone(b))
	}
	if n := len(j.kept); n > 1 && j.r.Float64() < j.swap {
		k := max(n-1-j.r.IntN(5), 0)
		j.kept[n-1], j.kept[k] = j.kept[k], j.kept[n-1]
	}
	if j.r.Float64() < j.double && len(j.kept) > 0 {
		j.kept = append(j.kept, bytes.Clone(j.kept[len(j.kept)-1]))
	}
}

// deliver hands over what was kept.
func (j *joiner) deliver() {
	s := j.to.stripes[0]
	s.lease.lock()
	list := j.take()
	now := j.to.now()
	for len(list) > 0 {
		size, all := len(list[0]), []byte(nil)
		for len(list) > 0 && len(list[0]) <= size && len(all)+size <= 1<<16 {
			last := len(list[0]) < size
			all = append(all, list[0]...)
			list = list[1:]
			if last {
				break
			}
		}
		first := all[:size:size]
		s.dispatch(now, now, &j.from, first, false)
		n := s.handleTrain(now, now, &j.from, first, all[size:])
		j.byTrains += n
		j.others += len(all) - n
		s.message = sock.Message{From: j.from, Bytes: all[size+n:], Segment: size}
		s.split(now, now)
	}
	s.settle(now)
	s.leave()
}

// TestTrains sends long messages in packets that come joined, in any order, lost
// and doubled. They come once, in order and whole.
func TestTrains(t *testing.T) {
	for name, j := range map[string]*joiner{
		"clean": {}, "loss": {loss: 0.01}, "double": {double: 0.02}, "reorder": {swap: 0.02},
		"all": {loss: 0.02, double: 0.02, swap: 0.02}, "window": {}, "key": {},
	} {
		t.Run(name, func(t *testing.T) {
			j.r = rand.New(rand.NewPCG(1, 2))
			c := Config{Impair: j.impair, MaxPacket: 1472, MaxBcopy: longSize}
			if name == "window" {
				c.MaxBcopy, c.Window = minWindow/4, minWindow // trains end where the ring does
			}
			if name == "key" {
				c.Key = []byte("key")
			}
			a, b := open(t, false, c), open(t, false, c)
			ep := pair(t, a, b)
			j.between(a, b)
			next, sent, count := uint64(0), uint64(0), uint64(100)
			size := func(n uint64) int { return c.MaxBcopy - int(n*n*31)%2000*int(n%2) }
			b.SetHandler(1, func(_ hw.Source, header uint64, _, p []byte) {
				if header != next || !bytes.Equal(p, numbered(size(next), next)) {
					t.Errorf("message %d of %d bytes came as number %d", header, len(p), next)
				}
				next++
			})
			eventually(t, "all messages", func() bool {
				for sent < count {
					if !bcopy(t, ep, sent, nil, size(sent), hwtest.Packed(numbered(size(sent), sent))) {
						break
					}
					sent++
				}
				a.Progress(16)
				j.deliver()
				b.Progress(256)
				return next == count || t.Failed()
			})
			if name == "clean" && j.byTrains < j.others || name == "key" && j.byTrains != 0 || j.byTrains == 0 &&
				name != "key" {
				t.Errorf("%d bytes came by trains, %d otherwise", j.byTrains, j.others)
			}
			if n := b.Stats().Malformed; n != 0 {
				t.Errorf("%d malformed packets", n)
			}
		})
	}
}

// numbered is what a message of n bytes carries.
func numbered(n int, number uint64) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(number + uint64(k)*3 + uint64(k>>8))
	}
	return b
}

// forge hands over the first of packets that the joiner kept, of which three are equally long, then
// what looks like the rest of its train and is none: the second packet as the forgeries, changes
// common to all trains and others, have made it. Nothing of them may be taken. The
// second and third themselves are.
func (j *joiner) forge(t *testing.T, kept [][]byte, others map[string]func(b []byte)) {
	t.Helper()
	if len(kept) < 4 || len(kept[0]) != len(kept[1]) || len(kept[1]) != len(kept[2]) {
		t.Fatalf("%d packets", len(kept))
	}
	first, second, third := kept[0], kept[1], kept[2]
	s := j.to.stripes[0]
	s.lease.lock()
	defer s.leave()
	now := j.to.now()
	handle := func(from *sock.Addr, b []byte) int { return s.handleTrain(now, now, from, first, b) }
	if n := handle(&j.from, second); n != 0 {
		t.Errorf("%d bytes taken behind a packet that was not", n)
	}
	s.dispatch(now, now, &j.from, first, false)
	forgeries := map[string]func(b []byte){
		"stripe":        func(b []byte) { b[1]++ },
		"flags":         func(b []byte) { b[2] ^= wire.FlagAckNow },
		"index":         func(b []byte) { b[4]++ },
		"connection id": func(b []byte) { b[8]++ },
		"number":        func(b []byte) { b[16]++ },
		"frame":         func(b []byte) { b[wire.HeaderSize+2]-- }, // its length or offset
	}
	maps.Copy(forgeries, others)
	for name, f := range forgeries {
		forged := bytes.Clone(second)
		if f(forged); handle(&j.from, forged) != 0 {
			t.Errorf("%s: taken", name)
		}
	}
	elsewhere := sock.FromAddrPort(netip.MustParseAddrPort("127.0.0.9:9"))
	if n := handle(&elsewhere, second) + handle(&j.from, second[:len(second)-1]); n != 0 {
		t.Errorf("%d bytes of a packet from elsewhere and of a short one taken", n)
	}
	if n := handle(&j.from, append(bytes.Clone(second), third...)); n != 2*len(second) {
		t.Errorf("%d bytes of the train itself", n)
	}
}

// TestForgedTrains has strangers and a peer send what looks like the rest of a
// train and is none.
func TestForgedTrains(t *testing.T) {
	j := &joiner{r: rand.New(rand.NewPCG(1, 2))}
	c := Config{Impair: j.impair, MaxPacket: 1472, MaxBcopy: longSize}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b).(*Endpoint)
	j.between(a, b)
	if err := ep.AMBcopy(1, 0, nil, 10000, func(d []byte) { clear(d) }, 0); err != nil {
		t.Fatal(err)
	}
	j.forge(t, j.take(), map[string]func(b []byte){
		"kind":   func(b []byte) { b[wire.HeaderSize]++ },
		"offset": func(b []byte) { b[wire.HeaderSize+4]++ },
	})
}

// TestBadCableLong sends long messages between hosts, whose kernels join and cut
// packets, over a cable that does to them what cables do.
func TestBadCableLong(t *testing.T) {
	for name, p := range map[string]nettest.Impairment{
		"none": {}, "all": {Loss: 0.01, Double: 0.01, Delay: 0.01, Detour: 5000, Mark: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			ha, hb := nettest.New(t)
			c := Config{MaxBcopy: longSize}
			a, b := at(t, ha, false, c), at(t, hb, false, c)
			ha.Impair(p)
			hb.Impair(p)
			stream(t, a, b, 20000)
		})
	}
}

// TestCompany: less than a whole train waits while the peer has a backlog, but not for long.
func TestCompany(t *testing.T) {
	a, b := open(t, false, Config{MaxPacket: 1472}), open(t, false, Config{})
	c := pair(t, a, b).(*Endpoint)
	c.s.lease.lock()
	defer c.s.leave()
	tx := &c.tx
	defer func(next, limit uint64) { tx.next, tx.limit = next, limit }(tx.next, tx.limit)
	now := a.now()
	const delivered = 1000
	tx.lastLong, tx.limit, tx.next = now, tx.window+delivered, delivered+backlog
	whole := c.wholeTrain()
	if n := uint64(sock.MaxTrain(tx.mtu.Size())); whole != n*c.full() || n < 2 {
		t.Errorf("a train of %d packets has %d bytes", n, whole)
	}
	if n := c.leastSent(now); n != whole {
		t.Errorf("%d bytes leave at least", n)
	}
	if n := c.leastSent(now.Add(trainTime)); n != 0 {
		t.Errorf("%d bytes leave at least after %v", n, trainTime)
	}
	tx.next--
	if n := c.leastSent(now); n != 0 {
		t.Errorf("%d bytes leave at least, without a backlog", n)
	}
}

// TestNumbers: numbers in a row are skipped before, not among them, and single ones when it is time.
func TestNumbers(t *testing.T) {
	var tx sender
	tx.numbers(1)
	if tx.sent.Number() != 0 {
		t.Error("the first number is skipped")
	}
	p := recovery.Packet{Size: 1}
	for range 5 {
		tx.number()
		tx.sent.Add(1, p)
	}
	skip := tx.skip
	if n := tx.numbers(skip); n != skip || tx.sent.Number() != 5 {
		t.Errorf("%d in a row, as many as are left of %d: the next is %d", n, skip, tx.sent.Number())
	}
	if n := tx.numbers(skip + 1); n < skip+1 || tx.sent.Number() != 6 {
		t.Errorf("%d in a row, where %d were left: the next is %d", n, skip, tx.sent.Number())
	}
	if n := tx.numbers(2 * skipUpTo); n < 2*skipUpTo || tx.sent.Number() != 7 {
		t.Errorf("%d in a row: the next is %d", n, tx.sent.Number())
	}
}

// crowded fills what c's stripe is to send with datagrams of c that the kernel refuses. The caller has the lease.
func (c *Endpoint) crowded() {
	nowhere := sock.FromAddrPort(netip.MustParseAddrPort("127.0.0.1:0"))
	for c.s.out.Empty() || !c.s.out.Full(0) {
		c.s.out.Add(c.s.socket, &nowhere, c.owner(), c.s.out.Take(c.tx.mtu.Size()), nil, true)
	}
}

// TestTrainShrunk has the MTU fall while room is made for a train: none leaves, and nothing is lost.
func TestTrainShrunk(t *testing.T) {
	a, b := open(t, false, Config{MaxPacket: 1472, MaxBcopy: longSize}), open(t, false, Config{MaxBcopy: longSize})
	c := pair(t, a, b).(*Endpoint)
	got := 0
	b.SetHandler(1, func(_ hw.Source, _ uint64, _, p []byte) {
		if !bytes.Equal(p, numbered(len(p), 5)) {
			t.Error("wrong bytes")
		}
		got += len(p)
	})
	arrived := func(n int) {
		eventually(t, "messages", func() bool { a.Progress(1); b.Progress(16); return got == n && c.idleStream() })
	}
	if !bcopy(t, c, 0, nil, 100, hwtest.Packed(numbered(100, 5))) {
		t.Fatal("no room")
	}
	arrived(100)
	c.s.lease.lock()
	now, message := c.s.time(), numbered(longSize, 5)
	c.s.flush()
	c.beginRecord(now, recordMessage, 1, nil, len(message), 0)
	c.tx.ring.write(message)
	c.endRecord(0, len(message))
	c.crowded()
	next, size := c.tx.next, c.tx.mtu.Size()
	if c.sendTrain(now) || c.tx.next != next {
		t.Errorf("a train of %d bytes leaves", c.tx.next-next)
	}
	if c.tx.mtu.Size() >= size {
		t.Errorf("packets have %d bytes still", size)
	}
	c.transmit(now)
	c.s.leave()
	arrived(100 + longSize)
}

// TestServedCrowded: a region is in use until the kernel has read what is sent of it.
func TestServedCrowded(t *testing.T) {
	a, b := open(t, false, Config{MaxPacket: 1472}), open(t, false, Config{})
	c := pair(t, a, b).(*Endpoint)
	region := make([]byte, 1000)
	m, err := a.Memory().Register(regionOf(region))
	if err != nil {
		t.Fatal(err)
	}
	key, _ := a.Memory().UnpackKey(m.PackKey(nil))
	c.s.lease.lock()
	c.s.flush()
	c.crowded()
	c.ops.send(c.s.time(), &operation{kind: opServe, key: key[0], total: uint64(len(region))})
	if c.s.out.Empty() || len(c.s.entered) != 1 {
		t.Errorf("%d regions are in use before a flush", len(c.s.entered))
	}
	c.s.leave()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
