package dataplane

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// hostile is an endpoint whose peer writes what it likes to all that it can reach: the rings, tails and states of both
// sides, the table of its keys, the states of bounce buffers. Memory of the application lies between bytes that nothing
// may write.
type hostile struct {
	*notes
	self   hot.Thread
	line   *hot.EpochReader
	post   *hot.Post
	call   *hot.Poll
	target []byte // a region's, or a buffer's
	guard  []byte // target is its middle
	words  []uint64
	list   *[2]uintptr
}

const (
	guarded = 1024
	mark    = 0xa5
)

func newHostile(t testing.TB) *hostile {
	h := &hostile{notes: newNotes(t)}
	h.grow()
	h.line = (*hot.EpochReader)(h.memory(int(unsafe.Sizeof(hot.EpochReader{}))))
	h.self = hot.Thread{Line: uintptr(unsafe.Pointer(h.line)), Number: 1}
	h.post = (*hot.Post)(h.memory(int(unsafe.Sizeof(hot.Post{}))))
	h.call = (*hot.Poll)(h.memory(int(unsafe.Sizeof(hot.Poll{}))))
	h.words = unsafe.Slice((*uint64)(h.memory(4096)), 512)
	h.guard = h.bytes(3 * guarded)
	for i := range h.guard {
		h.guard[i] = mark
	}
	h.target = h.guard[guarded : 2*guarded]
	h.list = (*[2]uintptr)(h.memory(16))
	h.list[0] = uintptr(unsafe.Pointer(h.ep))
	h.cq.EPs = uintptr(unsafe.Pointer(h.list))
	place := uintptr(hot.KeyPlace(regionKey, 1<<keyLog2))
	region := (*hot.Region)(pointer(h.ep.Regions + place*unsafe.Sizeof(hot.Region{})))
	region.Addr, region.Len = uint64(at(h.target)), guarded
	h.rx.Handle = 9
	return h
}

// scribble writes pieces of b to what the peer can reach: each begins with a byte that says where, two for the offset,
// and one for how long it is.
func (h *hostile) scribble(b []byte) {
	ring := unsafe.Slice((*byte)(pointer(h.ep.Inbound[0].Ring.Slots)), hot.SlotBytes<<ringLog2)
	lane := unsafe.Slice((*byte)(pointer(h.peer.Tail-unsafe.Offsetof(hot.RxRing{}.Tail))), laneBytes)
	claims := int(unsafe.Sizeof(hot.Claim{})) * hot.Claims
	keys := unsafe.Slice((*byte)(pointer(h.peer.Keys)), int(unsafe.Sizeof(hot.Key{}))<<keyLog2+claims)
	state := unsafe.Slice((*byte)(unsafe.Pointer(h.state)), 8)
	places := [][]byte{ring, lane, keys, state, h.bounce, ring}
	for len(b) >= 4 {
		to := places[int(b[0])%len(places)]
		offset, n := int(binary.LittleEndian.Uint16(b[1:]))%len(to), min(int(b[3]), len(b)-4)
		copy(to[offset:], b[4:4+n])
		b = b[4+n:]
	}
}

// unharmed fails where bytes beside the target were written, or the thread still says that it uses lines of peers.
func (h *hostile) unharmed() {
	h.t.Helper()
	for i, b := range h.guard {
		if b != mark && (i < guarded || i >= 2*guarded) {
			h.t.Fatalf("byte %d beside the buffer was written", i-guarded)
		}
	}
	if h.line.Posting&1 != 0 {
		h.t.Fatal("the thread says that it uses lines of peers")
	}
}

// posting are the entry points that post what may go to a peer.
var posting = []func(a, b, c, d uintptr) uintptr{Send, Datagram, RMA, Atomic, Note, Recv}

// kinds are those that the shim sets.
const kinds = hot.PostTagged | hot.PostData | hot.PostInject | hot.PostRead | hot.PostAlone | hot.PostVector |
	hot.PostRemote | hot.PostDevice

// fill makes a post of bytes. The addresses are those of memory that there is, or none: an application that gives
// others harms itself; all else is what it likes.
func (h *hostile) fill(b []byte) {
	words := h.words
	clear(words)
	for i := range min(len(b)/8, 16) {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	address := func(bit uint, of uintptr) uintptr {
		if words[0]>>bit&1 != 0 {
			return 0
		}
		return of
	}
	text, vector := at(h.target), uintptr(unsafe.Pointer(&words[32]))
	size := uint64(max(1, fi.Datatype(words[10]>>32).Size())) // of an atomic operation's elements
	words[32], words[33] = uint64(text), words[12]%guarded/size
	words[34], words[35], words[36] = words[5], words[12]%guarded, words[6]
	*h.post = hot.Post{
		EP: uintptr(unsafe.Pointer(h.ep)), Self: threadAt(&h.self), Buf: address(0, text),
		Len: words[1], Dest: words[2],
		Header: words[5], Data: words[4], Flags: words[3], Context: 1, Key: words[6],
		Kind: uint32(words[7]) & kinds, Compare: address(1, text), Result: address(2, text),
		Note: address(3, text), NoteLen: words[8], NoteTag: words[9],
		Op: uint32(words[10]), Datatype: uint32(words[10] >> 32), Atomic: uint32(words[11]) % 3,
		Compares: words[13], Results: words[14],
		Remote: address(4, uintptr(unsafe.Pointer(&words[34]))), Remotes: words[15],
	}
	p := h.post
	if p.Kind&hot.PostVector != 0 {
		p.Buf = address(0, vector)
		for _, v := range []*uintptr{&p.Compare, &p.Result} {
			if *v != 0 {
				*v = vector
			}
		}
	} else if most := guarded / size; p.Len > most && p.Len <= uint64(h.ep.EagerMax) {
		p.Len = most
	}
}

// posted makes a post as the shim does. A post that is refused has left the ring as it was.
func (h *hostile) posted(f func(a, b, c, d uintptr) uintptr, failed int32) {
	h.t.Helper()
	tail := *(*uint64)(pointer(h.peer.Tail))
	for range 16 {
		switch code := f(uintptr(unsafe.Pointer(h.post)), uintptr(unsafe.Pointer(h.rx)), 0, 0); code {
		case hot.PostTime:
			h.post.Now = 1
			continue
		case hot.PostCopy:
			if c := &h.post.Copy; c.Len > guarded && c.Len != h.post.Len {
				h.t.Fatalf("a copy of %d bytes for a post of %d", c.Len, h.post.Len)
			}
			h.post.Copy.Error = failed
			continue
		case hot.PostAgain, hot.PostGo:
			if now := *(*uint64)(pointer(h.peer.Tail)); now != tail {
				h.t.Fatalf("code %d, and the tail went from %d to %d", code, tail, now)
			}
		case hot.PostDone, hot.PostNote, hot.PostBell:
		default:
			h.t.Fatalf("code %d", code)
		}
		h.unharmed()
		return
	}
	h.t.Fatal("a post does not end")
}

// bytesOf are the words of a post, for seeds.
func bytesOf(words ...uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// FuzzPosting gives the entry points that post an application's arguments, whatever they are, while the peer has
// written to all that it can reach.
func FuzzPosting(f *testing.F) {
	message := bytesOf(0, 8, senderAddr, 0, 0, 5, 0, hot.PostTagged)
	write := bytesOf(0, 8, senderAddr, 0, 0, 16, regionKey, 0)
	longWrite := bytesOf(0, guarded, senderAddr, 0, 0, 0, regionKey, hot.PostData)
	read := bytesOf(0, 100, senderAddr, fi.Completion, 0, 1000, regionKey, hot.PostRead)
	sum := uint64(fi.OpSum) | uint64(fi.Uint64)<<32
	fetch := bytesOf(0, 1, senderAddr, 0, 0, 8, regionKey, 0, 0, 0, sum, hot.AtomicFetch)
	most := uint64(fi.OpMax) | uint64(fi.Double)<<32
	doubles := bytesOf(0, 40, senderAddr, 0, 0, 8, regionKey, 0, 0, 0, most, hot.AtomicFetch)
	vector := bytesOf(0, 1, senderAddr, 0, 0, 8, regionKey, hot.PostVector|hot.PostRemote, 0, 0, 0, 0, 40, 1, 1, 1)
	note := bytesOf(0, 0, senderAddr, 0, 0, 0, 0, hot.PostAlone, 30, 7)
	key := append([]byte{2, 0, 0, 255}, bytesOf(^uint64(0), regionKey, ^uint64(0), ^uint64(7))...)
	for i := range posting {
		for _, post := range [][]byte{message, write, longWrite, read, fetch, doubles, vector, note} {
			f.Add(byte(i), post, []byte(nil), int32(0))
		}
		f.Add(byte(i), message, append([]byte{1, 0, 0, 128}, make([]byte, 128)...), int32(0))
		f.Add(byte(i), longWrite, []byte{4, 0, 0, 4, 1, 1, 1, 1, 3, 0, 0, 4, 255, 255, 255, 255}, int32(0))
		f.Add(byte(i), read, key, int32(fi.EPERM))
	}
	f.Fuzz(func(t *testing.T, function byte, post, segment []byte, failed int32) {
		h := newHostile(t)
		for range 3 {
			h.fill(post)
			h.posted(posting[int(function)%len(posting)], failed)
			h.scribble(segment)
		}
	})
}

// polled makes a call that polls as the shim does. What the runtime would do is left undone.
func (h *hostile) polled(f func(a, b, c, d uintptr) uintptr, failed int32) {
	h.t.Helper()
	entries := uintptr(unsafe.Pointer(&h.words[0]))
	*h.call = hot.Poll{
		Reader: hot.Reader{CQ: uintptr(unsafe.Pointer(h.cq)), Buf: entries, Left: 8}, EPs: h.cq.EPs,
		Thread: threadAt(&h.self),
	}
	for range 1000 {
		code := f(uintptr(unsafe.Pointer(h.call)), 0, 0, 0)
		switch code {
		case hot.DeliveryDone:
			if h.rx.Lease != 0 {
				h.t.Fatal("the lease is not given back")
			}
			h.unharmed()
			return
		case hot.DeliveryRead:
			first, c := uint64(at(h.target)), &h.call.Delivery.Copy
			if c.Buf < first || c.Len > guarded || c.Buf-first > guarded-c.Len {
				h.t.Fatalf("a message of %d bytes is to be read to %#x", c.Len, c.Buf)
			}
			c.Error = failed
		case hot.PollProgress: // drops what it cannot take: the ring goes on
			in := &h.ep.Inbound[0]
			in.Head++
		}
		h.call.Answer = 0
	}
	h.t.Fatal("a poll does not end")
}

// FuzzPolling has the entry points that poll take in what a peer has written to the rings, behind messages of its own
// and into them: nothing beside the receive's buffer and the region is written, completions fit, and a poll ends.
func FuzzPolling(f *testing.F) {
	rts := eager(hot.AMRTS, 1, 0, make([]byte, 80))
	rts[2] = byte(unsafe.Sizeof(hot.RTSHead{}))
	write := eager(hot.AMWrite, 16, 0, append(bytesOf(regionKey, 0, hot.WriteLast), "payload."...))
	write[2], write[4] = hot.WriteHeadBytes, 8
	tagged, long := eager(hot.AMTag, 1, 0, []byte("payload")), eager(hot.AMMsgData, 0, 5, make([]byte, 96))
	for _, slot := range [][]byte{tagged, long, rts, write} {
		f.Add(byte(0), slot, []byte(nil), int32(0))
		f.Add(byte(1), slot, []byte{0, 8, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255}, int32(fi.EFAULT))
		f.Add(byte(2), slot, []byte{0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255, 0, 128, 0, 2, 1, 1}, int32(0))
	}
	for id := range byte(hot.AMTagData + 16) {
		head := []byte{id, hot.SlotBounce, 40, 0, 255, 255, 255, 255}
		f.Add(id, append(head, make([]byte, 100)...), []byte(nil), int32(0))
	}
	f.Fuzz(func(t *testing.T, function byte, slot, segment []byte, failed int32) {
		h := newHostile(t)
		for _, flags := range []uint64{hot.RecvTagged, fi.MultiRecv} {
			h.world.post(hot.RecvEntry{
				Flags: flags, Buf: uint64(at(h.target)), Len: guarded, Src: uint64(fi.AddrUnspec),
				Ignore: ^uint64(0), Context: 1,
			})
		}
		for range 3 {
			h.send(slot)
			h.send(eager(hot.AMTag, 1, 0, []byte("payload")))
			h.scribble(segment)
			h.polled([]func(a, b, c, d uintptr) uintptr{Read, Progress, Read}[int(function)%3], failed)
		}
		for e, ok := h.pop(); ok; e, ok = h.pop() {
			if e.Len > guarded {
				t.Fatalf("a completion of %d bytes", e.Len)
			}
		}
	})
}
