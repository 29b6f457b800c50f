package sock

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"
)

func (b *inbox) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&b.mem[at])) }

func (b *inbox) half(at int) *uint32 { return (*uint32)(unsafe.Pointer(&b.mem[at])) }

// take reads what is in the inbox into m and returns how many datagrams that are. They
// are valid until the next call.
func (b *inbox) take(m []Message) (n int) {
	if b.head-b.released >= headEvery {
		b.released = b.head
		atomic.StoreUint64(b.word(inboxHead), b.released)
	}
	for n < len(m) && b.head-b.released < inboxSlots {
		slot := int(b.head & (inboxSlots - 1))
		at := inboxDesc + slot<<descShift
		if atomic.LoadUint32(b.half(at+descSeq)) != uint32(b.head+1) { // ↔ P2
			break
		}
		desc := b.mem[at : at+descBytes : at+descBytes]
		from := inboxFirst + slot<<slotShift
		b.head += uint64(min(max(binary.NativeEndian.Uint32(desc[descSpan:]), 1), mostSlots))
		if readSlots(desc, b.mem[from:from+inboxMost:from+inboxMost], &m[n]) {
			n++
		}
	}
	return n
}

// readSlots reads the descriptors of slots that are filled, and they hold, false if that is nothing.
func readSlots(desc, slots []byte, m *Message) bool {
	size := binary.NativeEndian.Uint32(desc[descLen:])
	if size <= udpHeader || size > inboxMost {
		return false
	}
	ip, udp := desc[descIP:], slots[:size:size]
	port := binary.BigEndian.Uint16(udp)
	at := time.Duration(binary.NativeEndian.Uint64(desc[descTime:]))
	*m = Message{Bytes: udp[udpHeader:], Segment: int(size) - udpHeader, Driver: at}
	if gso := int(binary.NativeEndian.Uint32(desc[descGSO:])); gso > 0 {
		m.Segment = min(gso, m.Segment)
	}
	if ip[0]>>4 == 4 {
		m.From, m.Marked = FromIPv4([4]byte(ip[12:16]), port), ip[1]&3 == 3
	} else {
		m.From, m.Marked = FromIPv6([16]byte(ip[8:24]), port, 0), ip[1]>>4&3 == 3
	}
	return true
}

// outstanding is how many datagrams the program has left to the socket that did not come.
func (b *inbox) outstanding() uint64 { return atomic.LoadUint64(b.word(inboxPassed)) - b.taken }

// polled takes in that a poll of the socket found n datagrams, and whether all that was
// there.
func (b *inbox) polled(n int, all bool, passed uint64) {
	b.taken += uint64(n)
	switch {
	case !all:
		return
	case n > 0 || b.taken == passed:
		b.miss = 0
	default:
		b.miss++
	}
	if b.miss > inboxMisses || int64(b.taken-passed) > 0 { // the kernel dropped some, or some came before the program
		b.miss, b.taken = 0, passed
	}
	if word := b.word(inboxTaken); b.taken != *word { // ours alone
		atomic.StoreUint64(word, b.taken)
	}
}

// switchOff has all go to the socket, or no longer. Any thread may call it.
func (b *inbox) switchOff(off bool) {
	if !off {
		atomic.StoreUint32(b.half(inboxOff), 0)
	}
	if off || b.unused.Load() {
		atomic.StoreUint32(b.half(inboxOff), 1) // O1
	}
}
