package wire

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Active messages of the two-sided protocol. One with Data in its name has the remote CQ data as its 8-byte head.
const (
	AMMsg     hw.AMID = hot.AMMsg
	AMMsgData hw.AMID = hot.AMMsgData
	AMTag     hw.AMID = hot.AMTag
	AMTagData hw.AMID = hot.AMTagData

	AMRTS  hw.AMID = hot.AMRTS  // ready to send: head [RTS], header the tag
	AMSync hw.AMID = hot.AMSync // eager that asks for an acknowledgement: head [Sync], header the tag
	AMAck  hw.AMID = hot.AMAck  // header the sender's request id, head of [PutAck]
	AMCTS  hw.AMID = hot.AMCTS  // clear to send: header the sender's request id, head [CTS]
	AMFrag hw.AMID = hot.AMFrag // header the receiver's operation id, head the offset

	AMAssist hw.AMID = hot.AMAssist // header the sender's request id, head [Offer]

	// header the sender's request id, head [Landing], payload the key of the receiver's memory
	AMLanding hw.AMID = hot.AMLanding
	AMPut     hw.AMID = hot.AMPut // header the sender's request id, head of [PutSpan]: what the sender is to put there
	// header the receiver's operation id, head as of AMAck: the sender waits for a put to do
	AMHelped hw.AMID = hot.AMHelped
)

// Active messages of one-sided operations. The header is the address in the
// target's region for the first four, AMShare and AMAccessed, and the initiator's request id for the
// answers.
const (
	AMWrite    hw.AMID = hot.AMWrite    // head [Write], and the payload
	AMRead     hw.AMID = hot.AMRead     // head [Read]
	AMNotify   hw.AMID = hot.AMNotify   // head [Write]: the payload is there already
	AMAtomic   hw.AMID = hot.AMAtomic   // head [Atomic], payload the operands, then the comparands
	AMRMADone  hw.AMID = hot.AMRMADone  // head [Done]
	AMReadData hw.AMID = hot.AMReadData // head the offset in what is read or fetched, and the payload
	AMShare    hw.AMID = hot.AMShare    // head [Share]
	AMAccessed hw.AMID = hot.AMAccessed // head the key

	// Header the key of a region, head of [PutKeyAsk] and [KeyAnswer]: a question for the device's key, and its answer.
	AMKeyAsk    hw.AMID = hot.AMKeyAsk
	AMKeyAnswer hw.AMID = hot.AMKeyAnswer
)

// AMNotice is each message of notifications. Its header is the stream, a random number that
// the sender chooses for each connection to a receiver; the first byte of its head is its kind.
const AMNotice hw.AMID = hot.AMNotice

// Active messages of collective operations. A group has a number of its own at
// each member, which sends it to the others when it joins.
const (
	AMCollJoin hw.AMID = hot.AMCollJoin // header the group's key, head [CollJoin]
	// header the receiver's group, head [CollStep], [CollChunk] or [CollPiece], and the payload
	AMCollStep hw.AMID = hot.AMCollStep
	AMCollRTS  hw.AMID = hot.AMCollRTS  // header the receiver's group, head [CollLong]
	AMCollDone hw.AMID = hot.AMCollDone // header the sender's request, head as of AMAck
	AMCollCTS  hw.AMID = hot.AMCollCTS  // header the sender's request, head [CTS]
	AMCollFrag hw.AMID = hot.AMCollFrag // header the receiver's request, head the offset, and the payload
	// header the receiver's group, 0: not known; head [CollNote], [CollWord] or [CollRelay]
	AMCollNote hw.AMID = hot.AMCollNote
)
