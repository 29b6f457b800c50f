package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// What the users of an Endpoint have of the layers below it.

// Info is the endpoint's, with every default filled in.
func (e *Endpoint) Info() *fi.Info { return e.base.Info() }

// Domain is the domain that the endpoint belongs to.
func (e *Endpoint) Domain() *Domain { return e.base.Domain() }

// Deaf reports whether the endpoint has nothing that receives could complete on, and
// none is posted: one that is used for one-sided operations, though it could do
// messages too. fi_endpoint(3) asks for queues for the operations that are initiated.
func (e *Endpoint) Deaf() bool { return e.base.deaf() }

// BindCQ binds a completion queue for transmits (fi.Transmit), receives
// (fi.Recv) or both, with fi.SelectiveCompletion if only operations that ask
// for it complete. Errors: fi.EDOMAIN, fi.EBADFLAGS, fi.EINVAL when one is bound already,
// fi.EOPBADSTATE after Enable.
func (e *Endpoint) BindCQ(q *cq.Queue, flags uint64) error { return e.base.BindCQ(q, flags) }

// BindAV binds the address vector. Errors: fi.EDOMAIN, fi.EBADFLAGS, fi.EINVAL for a
// second one, fi.EOPBADSTATE after Enable.
func (e *Endpoint) BindAV(a *AV, flags uint64) error { return e.base.BindAV(a, flags) }

// The rest makes it a WorkEndpoint, and driven.

func (e *Endpoint) common() *binder           { return &e.base.binder }
func (e *Endpoint) drive(c *cq.Counter) error { return e.base.drive(c) }
func (e *Endpoint) undrive(c *cq.Counter)     { e.base.undrive(c) }
