package provider

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/outcome"
)

// destination is where a message of the protocol goes that may wait for room (package control): a peer, or the sender
// behind a source, which the message answers.
type destination struct {
	ep   *leasedEP
	link *link     // nil: an answer
	src  hw.Source // of an answer: what it answers came from there,
	to   sender    // which sender it was
}

// Send sends a message (control.Destination).
func (d destination) Send(id hw.AMID, header uint64, head []byte) error {
	var p *path
	var err error
	if d.link != nil {
		p, err = d.ep.ep.base.links.Connect(d.link)
	} else {
		p, err = d.ep.connectBack(d.src, d.to)
	}
	if err == nil {
		err = outcome.OfPost(p.AMShort(id, header, head, nil))
	}
	return err
}

// send sends a message of the protocol to a peer, now or when there is room.
func (r *receiving) send(e *leasedEP, l *link, id hw.AMID, header uint64, head []byte) {
	r.out.Send(destination{ep: e, link: l}, id, header, head)
}

// answer sends a message of the protocol to the sender behind a source, now or when there is room.
func (r *receiving) answer(e *leasedEP, src hw.Source, s sender, id hw.AMID, header uint64, head []byte) {
	r.out.Send(destination{ep: e, src: src, to: s}, id, header, head)
}

// sendSoon has what found no room go out with the next progress, after a call by the data plane.
func (r *receiving) sendSoon() {
	if r.out.Len() != 0 {
		r.base.notifyPoll()
	}
}
