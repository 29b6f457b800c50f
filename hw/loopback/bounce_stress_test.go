package loopback

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// bounceMix is the traffic of TestBounceStress: senders with stripes, each driven
// by a goroutine, and receivers, of which the last closes and comes back.
const (
	mixSenders   = 2
	mixStripes   = 3
	mixReceivers = 3
	mixBuffers   = 2 // of each stripe: they are always short
	mixBytes     = 1024
)

// mixBody fills or checks a body: its length and every byte follow from the header.
func mixBody(header uint64) []byte {
	chance := rand.New(rand.NewPCG(header, 1))
	body := make([]byte, 1+chance.IntN(mixBytes))
	for i := range body {
		body[i] = byte(chance.Uint32())
	}
	return body
}

// mixReceiver is what a receiver has seen. Only its own goroutine uses it.
type mixReceiver struct {
	t       *testing.T
	iface   *Iface
	strict  bool // it stays, so nothing is lost on the way to it
	next    [mixSenders * mixStripes]uint64
	arrived atomic.Uint64 // messages; stored by the receiver, read by the test
}

// take is the handler. The header is the stream's number, 8 bits, and the message's in it.
func (r *mixReceiver) take(_ hw.Source, header uint64, _, payload []byte) {
	stream, n := header>>56, header<<8>>8
	if stream >= uint64(len(r.next)) || n < r.next[stream] || r.strict && n != r.next[stream] {
		r.t.Errorf("stream %d: message %d, want %d", stream, n, r.next[stream])
		return
	}
	r.next[stream] = n + 1
	if want := mixBody(header); !bytes.Equal(payload, want) {
		r.t.Errorf("stream %d: message %d of %d bytes is not what was sent", stream, n, len(payload))
	}
	r.arrived.Add(1)
}

// serve makes progress until stop; a receiver that does not stay is closed and
// opened again at the same address all the time.
func (r *mixReceiver) serve(stop *atomic.Bool, config Config) {
	chance := rand.New(rand.NewPCG(uint64(len(r.next)), 7))
	for !stop.Load() {
		if r.iface.Progress(1+chance.IntN(8)) == 0 {
			runtime.Gosched()
		}
		if r.strict || chance.IntN(500) != 0 {
			continue
		}
		address := r.iface.Address()
		_ = r.iface.Close()
		again, err := Open(address, config)
		if err != nil {
			r.t.Errorf("opening it again: %v", err)
			return
		}
		again.SetHandler(1, r.take)
		r.iface = again
	}
}

// mixStream sends count messages of a stripe to receivers by turns and chance;
// it says how many went to each.
func mixStream(t *testing.T, from *Iface, stripe int, stream uint64, to [][]byte, count int) [mixReceivers]uint64 {
	var sent [mixReceivers]uint64
	var eps [mixReceivers]hw.Endpoint
	chance := rand.New(rand.NewPCG(stream, 3))
	for range count {
		k := chance.IntN(mixReceivers)
		header := stream<<56 | sent[k]
		body := mixBody(header)
		for {
			if eps[k] == nil {
				eps[k], _ = from.Connect(to[k]) // an error: it is just being opened again
			}
			if eps[k] == nil {
				break
			}
			err := eps[k].AMBcopy(1, header, nil, len(body), func(dst []byte) { copy(dst, body) }, stripe)
			if err == nil {
				sent[k]++
				break
			}
			if !errors.Is(err, hw.ErrNoResource) {
				eps[k] = nil // the receiver is gone, and what was on the way with it
				break
			}
			runtime.Gosched()
		}
	}
	return sent
}

// TestBounceStress has stripes that are always short of bounce buffers send to
// receivers, one of which keeps going away with what it was sent. Every body is
// what its header says, each stream comes in order, nothing is lost to those that
// stay, and in the end every buffer is free again.
func TestBounceStress(t *testing.T) {
	count := 15000
	if testing.Short() {
		count = 4000
	}
	began := time.Now()
	config := Config{Dir: shmDir(t), RingLog2: 3, BounceBytes: mixBytes, Stripes: mixStripes,
		BounceCount: mixStripes * mixBuffers, Logf: func(string, ...any) {}}
	var receivers [mixReceivers]*mixReceiver
	var addresses [][]byte
	for k := range receivers {
		r := &mixReceiver{t: t, iface: open(t, config), strict: k != mixReceivers-1}
		r.iface.SetHandler(1, r.take)
		receivers[k], addresses = r, append(addresses, r.iface.Address())
	}
	var stop atomic.Bool
	var serving, sending sync.WaitGroup
	for _, r := range receivers {
		serving.Go(func() { r.serve(&stop, config) })
	}
	var senders [mixSenders]*Iface
	var sent [mixSenders * mixStripes][mixReceivers]uint64
	for a := range senders {
		senders[a] = open(t, config)
		serving.Go(func() { // its lease holder: takes back what the dead kept
			for !stop.Load() {
				senders[a].Progress(8)
				senders[a].CheckPeers()
				runtime.Gosched()
			}
		})
		for stripe := range mixStripes {
			stream := a*mixStripes + stripe
			sending.Go(func() { sent[stream] = mixStream(t, senders[a], stripe, uint64(stream), addresses, count) })
		}
	}
	sending.Wait()
	for end := time.Now().Add(hang); !t.Failed(); time.Sleep(time.Millisecond) {
		if missing := mixMissing(receivers[:], sent[:]); missing == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d messages are missing", missing)
		}
	}
	stop.Store(true)
	serving.Wait()
	_ = receivers[mixReceivers-1].iface.Close()
	for _, from := range senders {
		until(t, from, func() bool { return mixFree(from) == mixStripes*mixBuffers })
	}
	t.Logf("%d messages, %v", mixSenders*mixStripes*count, time.Since(began).Round(time.Millisecond))
}

// mixMissing is how many messages to receivers that stay have not arrived.
func mixMissing(receivers []*mixReceiver, sent [][mixReceivers]uint64) (missing uint64) {
	for k, r := range receivers {
		if !r.strict {
			continue
		}
		for _, s := range sent {
			missing += s[k]
		}
		missing -= r.arrived.Load()
	}
	return missing
}

// mixFree counts the free buffers of an interface.
func mixFree(i *Iface) (free int) {
	for n := range i.seg.geo.bounceCount {
		if atomic.LoadUint32(&i.seg.bounce(n).State) == 0 {
			free++
		}
	}
	return free
}
