package ptp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A PTP management message (IEEE 1588-2008, clause 15) is a common header of 34
// bytes, a body of 14 and one TLV: type, length, identifier and data. All
// numbers are big endian.
const (
	headerSize  = 34
	messageSize = headerSize + 14 + 6

	typeManagement = 0x0d
	actionGet      = 0
	actionResponse = 2
	tlvManagement  = 0x0001

	portDataSet  = 0x2004
	timeStatusNP = 0xc000 // linuxptp's own
	portSize     = 26
	timeSize     = 50
)

// PortState is the state of a PTP port (IEEE 1588-2008, table 8).
type PortState uint8

// The states of a port that weft asks about.
const (
	Master PortState = 6
	Slave  PortState = 9
)

var portStates = [...]string{"none", "initializing", "faulty", "disabled", "listening", "pre-master", "master",
	"passive", "uncalibrated", "slave"}

// String names the state.
func (s PortState) String() string {
	if int(s) < len(portStates) {
		return portStates[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// request appends a GET of a data set. The data that it asks for is sent as
// zeros, for daemons that want the TLV in its full length.
func request(b []byte, id uint16, size int, sequence uint16) []byte {
	at := len(b)
	b = append(b, make([]byte, messageSize+size)...)
	m := b[at:]
	m[0], m[1] = typeManagement, 2
	binary.BigEndian.PutUint16(m[2:], uint16(messageSize+size))
	binary.BigEndian.PutUint16(m[30:], sequence)
	m[32], m[33] = 4, 0x7f
	for i := headerSize; i < headerSize+10; i++ {
		m[i] = 0xff // every port
	}
	m[headerSize+12] = actionGet
	tlv := m[headerSize+14:]
	binary.BigEndian.PutUint16(tlv, tlvManagement)
	binary.BigEndian.PutUint16(tlv[2:], uint16(2+size))
	binary.BigEndian.PutUint16(tlv[4:], id)
	return b
}

var errMessage = errors.New("not a PTP management response")

// response returns the data of a response, which is all of m. Nothing in it is
// trusted.
func response(m []byte, id uint16, size int, sequence uint16) ([]byte, error) {
	if len(m) < messageSize {
		return nil, fmt.Errorf("%w: %d bytes", errMessage, len(m))
	}
	tlv := m[headerSize+14:]
	length := int(binary.BigEndian.Uint16(tlv[2:]))
	switch {
	case m[0]&0x0f != typeManagement || m[1]&0x0f != 2:
		return nil, fmt.Errorf("%w: type %#x, version %#x", errMessage, m[0], m[1])
	case m[headerSize+12]&0x0f != actionResponse:
		return nil, fmt.Errorf("%w: action %d", errMessage, m[headerSize+12]&0x0f)
	case binary.BigEndian.Uint16(m[30:]) != sequence:
		return nil, fmt.Errorf("%w: sequence %d, not %d", errMessage, binary.BigEndian.Uint16(m[30:]), sequence)
	case binary.BigEndian.Uint16(tlv) != tlvManagement || binary.BigEndian.Uint16(tlv[4:]) != id:
		return nil, fmt.Errorf("%w: TLV %#x of %#x", errMessage, binary.BigEndian.Uint16(tlv),
			binary.BigEndian.Uint16(tlv[4:]))
	case length < 2+size || len(tlv) < 4+length:
		return nil, fmt.Errorf("%w: TLV of %d bytes", errMessage, length)
	}
	return tlv[6 : 6+size], nil
}

// Daemon is what the PTP daemon says.
type Daemon struct {
	// State is its port's.
	State PortState

	// Offset is how far the clock is from its master's.
	Offset time.Duration

	// Grandmaster is the identity of the clock that it follows, or its own if
	// its port is a master; 0 if there is none. Clocks that name the same one
	// are synchronised with each other.
	Grandmaster uint64
}

// decode reads PORT_DATA_SET and TIME_STATUS_NP.
func decode(port, status []byte) Daemon {
	d := Daemon{State: PortState(port[10]), Offset: time.Duration(binary.BigEndian.Uint64(status))}
	switch {
	case d.State == Master:
		d.Grandmaster = binary.BigEndian.Uint64(port)
	case binary.BigEndian.Uint32(status[38:]) != 0:
		d.Grandmaster = binary.BigEndian.Uint64(status[42:])
	}
	return d
}
