package provider

import (
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// stamping is an endpoint whose operations end late by the clock of a device.
type stamping struct {
	hw.Endpoint
	late  time.Duration
	ended int // of operations
}

// stamps is c, notified late.
func (s *stamping) stamps(c *hw.Completion) *hw.Completion {
	own := &hw.Completion{Idempotent: c.Idempotent}
	own.Func = func(own *hw.Completion) {
		s.ended++
		c.Late = s.late
		c.Update(1, own.Err())
	}
	own.Expect(1)
	return own
}

func (s *stamping) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return s.Endpoint.(hw.OneSided).PutZcopy(local, addr, key, s.stamps(c))
}

func (s *stamping) GetZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return s.Endpoint.(hw.OneSided).GetZcopy(local, addr, key, s.stamps(c))
}

// stamped has what x sends to y end late, and returns what says how late.
func (x *side) stamped(t *testing.T, y *side, late time.Duration) (s *stamping) {
	t.Helper()
	over(t, x, y, func(p hw.Endpoint) hw.Endpoint {
		s = &stamping{Endpoint: p, late: late}
		return s
	})
	return s
}

// TestSegmentsLate: the time for which a completion lay in its queue is not the segment's. It may be no longer than
// the segment took, or a clock is wrong; then that counts as nothing.
func TestSegmentsLate(t *testing.T) {
	for name, late := range map[string]time.Duration{"stamped": time.Hour, "not stamped": 0} {
		for kind, move := range map[string]func(t *testing.T) (x, y *side, s *stamping){
			"write":   func(t *testing.T) (x, y *side, s *stamping) { return lateByDevice(t, false, late) },
			"read":    func(t *testing.T) (x, y *side, s *stamping) { return lateByDevice(t, true, late) },
			"message": func(t *testing.T) (x, y *side, s *stamping) { return lateMessage(t, late) },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				x, y, s := move(t)
				l, _ := x.pathTo(y)
				r := leasedOf(x.ep).initiated.Flow(&l.Link).Path().RTT()
				if s.ended == 0 || uint64(s.ended) != r.Samples() || (late != 0) != (r.Max() == 1) {
					t.Errorf("%d operations, %d segments took %v to %v", s.ended, r.Samples(), r.Min(), r.Max())
				}
			})
		}
	}
}

// lateByDevice has x read or write memory of y's.
func lateByDevice(t *testing.T, read bool, late time.Duration) (x, y *side, s *stamping) {
	t.Helper()
	sides := overUDP(t, 2, flowsEverywhere)
	x, y = sides[0], sides[1]
	remote, local := make([]byte, 300<<10), make([]byte, 300<<10)
	m, err := y.ep.base.links.Transports()[1].Memory().Register(hw.Region{
		Addr: unsafe.Pointer(&remote[0]), Len: len(remote), Access: hw.RemoteRead | hw.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	key, err := x.ep.base.links.Transports()[1].Memory().UnpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	oneMessage(t, x, y, 64)
	s = x.stamped(t, y, late)
	x.byDevice(t, y, read, local, key)
	flags := fi.RMA | fi.Write
	if read {
		flags = fi.RMA | fi.Read
	}
	wantDone(t, x, y, 5, flags)
	return x, y, s
}

// lateMessage has x fetch a message of y's.
func lateMessage(t *testing.T, late time.Duration) (x, y *side, s *stamping) {
	t.Helper()
	sides := overUDP(t, 2, flowsEverywhere)
	x, y = sides[0], sides[1]
	oneMessage(t, x, y, 64)
	oneMessage(t, y, x, 64)
	s = x.stamped(t, y, late)
	oneMessage(t, y, x, 1<<20)
	return x, y, s
}
