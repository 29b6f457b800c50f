package provider

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/nettest"
)

// overCable makes two sides on two hosts.
func overCable(t *testing.T, change func(*config.Config)) (x, y *side, hx, hy *nettest.Host) {
	t.Helper()
	hx, hy = nettest.New(t)
	var sides []*side
	for _, h := range []*nettest.Host{hx, hy} {
		h.Do(func() {
			b := newBenchAt(t, h.IPv4.String(), nil, func(c *config.Config) {
				// addresses are not searched for among the interfaces of the thread that opens a token
				c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.Yes
				if change != nil {
					change(c)
				}
			}, rmaHints())
			sides = append(sides, b.side(t))
		})
	}
	if len(sides) != 2 {
		t.FailNow()
	}
	return sides[0], sides[1], hx, hy
}

// TestListLoss posts random lists with notifications between two hosts, on the way between which datagrams are lost:
// every byte is compared, and each notification comes once, in order.
func TestListLoss(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.1} {
		for name, change := range map[string]func(*config.Config){"whole": nil, "in segments": flowsEverywhere} {
			t.Run(fmt.Sprintf("%v of 100, %s", 100*loss, name), func(t *testing.T) {
				x, y, hx, hy := overCable(t, change)
				if loss != 0 {
					hx.Impair(nettest.Impairment{Loss: loss})
					hy.Impair(nettest.Impairment{Loss: loss})
				}
				elements, total := listsAgainstModel(t, x, y, 6, true)
				if n, b := x.counts("list_message"), x.counts("list_message_bytes"); n != elements || b != total {
					t.Errorf("%d elements of %d bytes went over the network, of %d and %d", n, b, elements, total)
				}
				lost := x.peerCounter("peer_packets_lost")
				many := x.peerCounter("peer_rtt_samples") > 60 // lists that read alone have few packets
				if loss == 0.1 && many && lost == 0 || loss == 0 && lost > 1000 {
					t.Errorf("%d packets were lost", lost)
				}
			})
		}
	}
}

// cableList prepares a list of 4,000 elements, 12 MB, from x to y. fill has all of its memory on one side hold a value.
func cableList(t *testing.T, x, y *side) (l *List, local, remote []byte) {
	t.Helper()
	const count, size = 4000, 3000
	local, remote = make([]byte, count*size), make([]byte, 2*count*size)
	to := x.opens(y.token(y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)))
	return x.list([]Piece{{
		Local: iovOf(local)[0].Base, Remote: to, Addr: to.Info().Base, Len: size, RemoteStride: 2 * size, Count: count,
	}}), local, remote
}

// runFor lets sides make progress for a while.
func runFor(d time.Duration, sides ...*side) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, s := range sides {
			s.ep.Progress()
		}
	}
}

// wantStrided finds value in the elements of the list of cableList, and zeroes between them.
func wantStrided(t *testing.T, remote []byte, value byte) {
	t.Helper()
	element := append(bytes.Repeat([]byte{value}, 3000), make([]byte, 3000)...)
	for i := 0; i < len(remote); i += len(element) {
		if !bytes.Equal(remote[i:i+len(element)], element) {
			t.Fatalf("element %d is wrong", i/len(element))
		}
	}
}

// TestListUnplugged takes the cable away in the middle of a list, on either side, and plugs it in again: the list ends
// well.
func TestListUnplugged(t *testing.T) {
	x, y, hx, hy := overCable(t, nil)
	l, local, remote := cableList(t, x, y)
	for i, h := range []*nettest.Host{hx, hy, hx, hy} {
		read, value := i >= 2, byte(i+1)
		if !read {
			copy(local, bytes.Repeat([]byte{value}, len(local)))
		} else {
			value = 2 // what was written last
			clear(local)
		}
		note := []byte{byte(i)}
		post(t, func() error { return l.Post(&ListArgs{Read: read, Note: note, Context: uint64(i)}) }, x, y)
		runFor(2*time.Millisecond, x, y)
		h.Up(false)
		runFor(200*time.Millisecond, x, y)
		to := remote
		if read {
			to = local
		}
		if bytes.Count(to, []byte{value}) == len(local) {
			t.Error("all bytes are there without a cable")
		}
		h.Up(true)
		wantDone(t, x, y, uint64(i), fi.RMA|map[bool]uint64{true: fi.Read, false: fi.Write}[read])
		if got := y.takes(1, x)[0]; !bytes.Equal(got.Data, note) {
			t.Errorf("notification %x, want %x", got.Data, note)
		}
		wantStrided(t, remote, value)
		if !bytes.Equal(local, bytes.Repeat([]byte{value}, len(local))) {
			t.Errorf("local memory is wrong after post %d", i)
		}
	}
}

// TestListUnpluggedForGood takes the cable away in the middle of a list: it ends with the error of a peer that is gone,
// and what it says of bytes that are done is so.
func TestListUnpluggedForGood(t *testing.T) {
	for _, read := range []bool{false, true} {
		x, y, hx, _ := overCable(t, func(c *config.Config) { c.PeerTimeout = 300 * time.Millisecond })
		l, local, remote := cableList(t, x, y)
		copy(local, bytes.Repeat([]byte{3}, len(local)))
		post(t, func() error { return l.Write(1) }, x, y)
		wantDone(t, x, y, 1, fi.RMA|fi.Write)
		wantStrided(t, remote, 3)
		from := local
		if read {
			from = remote
		}
		for i := range from {
			if from[i] == 3 {
				from[i] = 4
			}
		}
		post(t, func() error { return l.Post(&ListArgs{Read: read, Note: []byte("done"), Context: 2}) }, x, y)
		runFor(2*time.Millisecond, x, y)
		hx.Up(false)
		_, e, done := settle(t, x, y)
		if done || e.Err != fi.ECONNRESET || e.Context != 2 || e.Len >= l.Bytes() || e.Data >= uint64(l.Len()) {
			t.Errorf("read %t: done %t, %+v", read, done, e)
		}
		to := remote
		if read {
			to = local
		}
		if moved := uint64(bytes.Count(to, []byte{4})); moved < e.Len {
			t.Errorf("read %t: %d bytes are there, said %d", read, moved, e.Len)
		}
		if notes, err := y.ep.Notes(); len(notes) != 0 || err != nil {
			t.Errorf("%d notifications, %v", len(notes), err)
		}
	}
}
