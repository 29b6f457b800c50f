package wire

import "github.com/weft-fabric/weft/internal/hot"

// Ends says what a message of a one-sided operation is the last one of.
type Ends uint8

// EndsNothing is that of a message of an element that has more messages.
const (
	EndsNothing   Ends = 0
	EndsOperation Ends = hot.EndsOperation
	EndsElement   Ends = hot.EndsElement // one that is not the last of the operation, but the last one of its region
	EndsShared    Ends = hot.EndsShared  // one of whose region another one follows
)

// Operation reports whether the message is the last of its operation.
func (e Ends) Operation() bool { return e == EndsOperation }

// Element reports whether the message is the last of its element.
func (e Ends) Element() bool { return e != EndsNothing }

// Region reports whether the message is the last one for its region.
func (e Ends) Region() bool { return e == EndsOperation || e == EndsElement }

// valid reports whether a peer may have sent e.
func (e Ends) valid() bool { return e <= EndsShared }
