package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
)

// OpenCQ opens a completion queue. wait is the wait set of wait object
// fi.WaitSet, and not read for others. attr.Format is set where it was
// unspecified. Errors: fi.EINVAL for a nil attr, an unknown format, wait object
// or condition, a missing wait set, a size beyond the limit, and a negative
// signaling vector if fi.Affinity says that it counts; fi.EBADFLAGS for flags
// other than fi.Affinity; or what stopped the system from giving memory or
// descriptors.
//
// The signaling vector names the core that interrupts go to. There are none, so
// it changes nothing.
func (d *Domain) OpenCQ(attr *fi.CQAttr, wait *cq.WaitSet) (*cq.Queue, error) {
	if attr == nil {
		return nil, fi.EINVAL
	}
	if attr.Flags&fi.Affinity != 0 && attr.SignalingVector < 0 {
		return nil, refuse(log.CQ, fi.EINVAL, "open completion queue: signaling vector %d", attr.SignalingVector)
	}
	if attr.WaitObj != fi.WaitSet {
		wait = nil
	}
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	defer d.refs.Release()
	_, exclusive := d.exclusive()
	q, err := cq.Open(attr, cq.Options{
		Stripes:     d.cqStripes(),
		Exclusive:   exclusive,
		RingEntries: d.cfg.MPSCRingSize,
	}, wait)
	if err != nil {
		log.Warnf(log.CQ, "open completion queue: %v", err)
		return nil, err
	}
	attr.Format = q.Format()
	d.queues.Add(q, func() bool { return q.Hot() != nil })
	return q, nil
}

// OpenCounter opens a counter. A nil attr asks for one that counts completions,
// without a wait object. Errors: fi.EINVAL for an unknown wait object and a
// missing wait set, fi.EBADFLAGS for flags, fi.ENOSYS for events other than
// completions; or what stopped the system from giving memory or descriptors.
func (d *Domain) OpenCounter(attr *fi.CntrAttr, wait *cq.WaitSet) (*cq.Counter, error) {
	if attr == nil {
		attr = &fi.CntrAttr{}
	}
	if attr.WaitObj != fi.WaitSet {
		wait = nil
	}
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	defer d.refs.Release()
	c, err := cq.OpenCounter(attr, wait)
	if err != nil {
		log.Warnf(log.Cntr, "open counter: %v", err)
		return nil, err
	}
	c.OnChange(d.work.PostReady)
	c.OnClose(func() { d.drives.Undrive(c) })
	d.queues.Add(c, func() bool { return c.Hot() != nil })
	return c, nil
}

// OpenPoll opens a poll set. It keeps its members open, and through them the
// domain.
func (d *Domain) OpenPoll() (*cq.PollSet, error) { return cq.OpenPollSet(nil) }
