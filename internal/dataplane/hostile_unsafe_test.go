package dataplane

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/mpsc"
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
	pieces *List // of the target's bytes, here and at the peer
	batch  Batches
}

const (
	guarded  = 1024
	received = 128 // by a receive: the last bytes of the target
	mark     = 0xa5
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
	h.served.Addr, h.served.Len = uint64(at(h.target)), guarded
	h.rx.Handle, h.recv.Endpoints = 9, 1
	h.pieces = &List{Direct: true, Read: true, Write: true, Dest: senderAddr, Batches: h.batch.Address()}
	for _, n := range []uint32{1, 5, 2} {
		h.pieces.Runs = append(h.pieces.Runs, Run{
			First: h.pieces.Count, Count: n, Local: uint64(at(h.target)), Remote: 64, Len: 100, Here: 150,
			Key: regionKey, Direct: true,
		})
		h.pieces.Count += n
		h.pieces.Bytes += uint64(n) * 100
	}
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
	for i := range h.batch {
		if h.batch[i].taken != 0 {
			h.t.Fatal("a post has kept what lists are copied with")
		}
	}
}

// posting are the entry points that post what may go to a peer.
var posting = []func(a, b, c, d uintptr) uintptr{Send, Datagram, RMA, Atomic, Note, Recv, PostList}

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
		Shape: h.pieces.Address(), Picks: address(5, uintptr(unsafe.Pointer(&words[40]))), Count: words[13] % 64,
	}
	words[40], words[41], words[42] = words[14], words[15], words[11]
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

// copied makes the copy that a post asks for: it is no longer than the post, and one of a list lies in its memory.
func (h *hostile) copied(failed int32) {
	h.t.Helper()
	c := &h.post.Copy
	if c.Len > guarded && c.Len > h.post.Len {
		h.t.Fatalf("a copy of %d bytes for a post of %d", c.Len, h.post.Len)
	}
	if h.post.Batch != 0 {
		for _, s := range unsafe.Slice((*hw.Span)(pointer(c.Here)), c.Pieces) {
			if first := uint64(at(h.target)); s.Addr < first || s.Len > guarded || s.Addr-first > guarded-s.Len {
				h.t.Fatalf("%d bytes at %#x are to be copied, which no element of the list has", s.Len, s.Addr)
			}
		}
	}
	c.Error = failed
}

// posted makes a post as the shim does. A post that is refused has left the ring as it was.
func (h *hostile) posted(f func(a, b, c, d uintptr) uintptr, failed int32) {
	h.t.Helper()
	tail := *(*uint64)(pointer(h.peer.Tail))
	rx, ep := uintptr(unsafe.Pointer(h.rx)), uintptr(unsafe.Pointer(h.ep))
	for range 16 {
		switch code := f(uintptr(unsafe.Pointer(h.post)), rx, ep, 0); code {
		case hot.PostTime:
			h.post.Now = 1
			continue
		case hot.PostCopy:
			h.copied(failed)
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
	search := bytesOf(0, 0, uint64(fi.AddrUnspec), fi.Peek|fi.Claim, 0, 5, 0, hot.PostTagged|hot.PostVector)
	list := bytesOf(1, 0, senderAddr, fi.Completion)
	read5 := bytesOf(0, 0, senderAddr, 0, 0, 0, 0, 0, 0, 0, hot.ListRead|hot.ListBits, 0, 0, 8, 0x1f)
	outside := bytesOf(0, 0, senderAddr, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3|100<<32)
	noted := bytesOf(0, 0, senderAddr, 0, 0, 0, 0, 0, 30, 7, hot.ListRead, 0, 0, 2, 3|7<<32)
	key := append([]byte{2, 0, 0, 255}, bytesOf(^uint64(0), regionKey, ^uint64(0), ^uint64(7))...)
	for i := range posting {
		for _, post := range [][]byte{
			message, write, longWrite, read, fetch, doubles, vector, note, search, list, read5, noted, outside,
		} {
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

// polled makes a call that polls, one of a progress thread or another, as the shim does. What the runtime would do is
// left undone.
func (h *hostile) polled(f func(a, b, c, d uintptr) uintptr, thread bool, failed int32) {
	h.t.Helper()
	entries := uintptr(unsafe.Pointer(&h.words[0]))
	*h.call = hot.Poll{
		Reader: hot.Reader{CQ: uintptr(unsafe.Pointer(h.cq)), Buf: entries, Left: 8}, EPs: h.cq.EPs,
		Thread: threadAt(&h.self), Want: 2, Idle: 100, Most: 1000,
	}
	if thread {
		h.call.Flags = hot.PollThread
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
			for _, v := range unsafe.Slice((*fi.IOVec)(pointer(c.Here)), c.Pieces) {
				if b := uint64(v.Base); b < c.Buf || v.Len > c.Len || b-c.Buf > c.Len-v.Len || c.Pieces > VectorMax {
					h.t.Fatalf("%d bytes of %d at %#x are to be read to %#x", v.Len, c.Len, c.Buf, b)
				}
			}
			c.Error = failed
		case hot.DeliverySettle:
			h.settles(&h.call.Delivery)
		case hot.PollProgress: // drops what it cannot take: the rings go on
			h.drop()
		case hot.PollClock:
			h.call.Clock += 60
		}
		h.call.Answer = 0
		if code == hot.PollSleep {
			h.call.Answer = -int32(fi.EAGAIN)
		}
	}
	h.t.Fatal("a poll does not end")
}

// settles fails where a message that the runtime is to copy is not all in a slot or a bounce buffer.
func (h *hostile) settles(d *hot.Delivery) {
	h.t.Helper()
	ring, bounce := h.ep.Inbound[0].Ring.Slots, at(h.bounce)
	each := uint64(len(h.bounce) / bounceCount)
	within := func(place uintptr, n, count uint64) bool {
		offset := d.Payload - uint64(place)
		return offset < n*count && d.Length <= n-offset%n
	}
	if within(ring, hot.SlotBytes, 1<<ringLog2) || within(bounce, each, bounceCount) {
		return
	}
	h.t.Fatalf("a message of %d bytes at %#x is to be copied", d.Length, d.Payload)
}

// drop takes off the rings what the data plane leaves to the runtime.
func (h *hostile) drop() {
	mpsc.SetHead(&h.ep.Inbound[0], h.ep.Inbound[0].Head+1)
	if post := headPost(h.rx); post != nil && post.Flags&urgentPost != 0 {
		dropPost(h.rx, post)
		h.recv.Urgent.Add(-1)
	}
}

// search puts a search on the post ring: for any tag, or for one.
func (h *hostile) search(flags, ignore uint64) {
	p := hot.Post{
		EP: uintptr(unsafe.Pointer(h.ep)), Kind: hot.PostTagged | hot.PostVector, Flags: flags,
		Dest: uint64(fi.AddrUnspec), Context: 1,
		Header: 2, Data: ignore,
	}
	Recv(uintptr(unsafe.Pointer(&p)), uintptr(unsafe.Pointer(h.rx)), uintptr(unsafe.Pointer(h.ep)), 0)
}

// polling are the entry points that poll, the last of which is that of a progress thread.
var polling = []func(a, b, c, d uintptr) uintptr{Read, Progress, SRead, Drive}

// searching are the flags of searches.
var searching = [...]uint64{fi.Peek, fi.Peek | fi.Claim, fi.Peek | fi.Discard, fi.Claim}

// seedPolling adds messages of all kinds that are taken in, and some that are not.
func seedPolling(f *testing.F) {
	rts := eager(hot.AMRTS, 1, 0, bytesOf(5, 100, 0, 1<<32, 1<<20, 100))
	rts[2], rts[4] = byte(unsafe.Sizeof(hot.RTSHead{})), 0
	parts := eager(hot.AMRTS, 1, 0, bytesOf(5, 100, 0, 2<<32, 1<<20, 90, 1<<21, 10))
	parts[2], parts[4] = RTSFixed+2*16, 0
	write := eager(hot.AMWrite, 16, 0, append(bytesOf(regionKey, 0, hot.WriteLast), "payload."...))
	write[2], write[4] = hot.WriteHeadBytes, 8
	tagged, long := eager(hot.AMTag, 1, 0, []byte("payload")), eager(hot.AMMsgData, 0, 5, make([]byte, 96))
	head := bytesOf(hot.NoticeData|hot.NoticeAlone<<8, 0, noteTag, 20)
	notice := eager(hot.AMNotice, noteStream, 0, append(head, make([]byte, 20)...))
	notice[2], notice[4] = byte(unsafe.Sizeof(hot.NoticeHead{})), 20
	bounced := eager(hot.AMTag, 1, 0, bytesOf(1))
	bounced[1], bounced[5] = hot.SlotBounce, 2
	// These are longer than where they are.
	inSlot, inBounce := eager(hot.AMTag, 1, 0, nil), eager(hot.AMTag, 1, 0, bytesOf(1))
	inSlot[4], inBounce[1], inBounce[5] = 250, hot.SlotBounce, 8
	for _, slot := range [][]byte{tagged, long, rts, parts, write, notice, bounced, inSlot, inBounce} {
		for i := range byte(len(polling)) {
			f.Add(i, slot, []byte(nil), int32(0))
			f.Add(i|0x80|i<<4, slot, []byte(nil), int32(0))
			f.Add(i|0xc0|i<<4, slot, []byte(nil), int32(0))
			f.Add(i, slot, []byte{0, 8, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255}, int32(fi.EFAULT))
			f.Add(i, slot, []byte{0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255, 0, 128, 0, 2, 1, 1}, int32(0))
		}
	}
	for id := range byte(hot.AMTagData + 16) {
		head := []byte{id, hot.SlotBounce, 40, 0, 255, 255, 255, 255}
		f.Add(id, append(head, make([]byte, 100)...), []byte(nil), int32(0))
	}
}

// FuzzPolling has the entry points that poll take in what a peer has written to the rings, behind messages of its own
// and into them, with receives or with searches: nothing beside the receive's buffer and the region is written,
// completions and notifications fit, and a poll ends.
func FuzzPolling(f *testing.F) {
	seedPolling(f)
	f.Fuzz(func(t *testing.T, function byte, slot, segment []byte, failed int32) {
		h := newHostile(t)
		searches := function&0x80 != 0
		for _, flags := range []uint64{hot.RecvTagged, fi.MultiRecv} {
			if searches {
				break // for messages that are unexpected
			}
			h.world.post(hot.RecvEntry{
				Flags: flags, Buf: uint64(at(h.target)) + guarded - received, Len: received, Src: uint64(fi.AddrUnspec),
				Ignore: ^uint64(0), Context: 1,
			})
		}
		for range 3 {
			for i := range bounceCount {
				*(*uint32)(unsafe.Pointer(&h.bounce[i*len(h.bounce)/bounceCount])) = 1 // full, as the peer says
			}
			h.send(slot)
			h.send(eager(hot.AMTag, 1, 0, []byte("payload")))
			if searches {
				h.search(searching[function>>4&3], uint64(function>>6&1)-1)
			}
			h.scribble(segment)
			which := int(function) % len(polling)
			h.polled(polling[which], which == len(polling)-1, failed)
			for list, code := h.take(1, guarded); code == hot.TakeDone && len(list) != 0; {
				list, code = h.take(1, guarded)
			}
		}
		var miss errorEntry
		for ReadError(uintptr(unsafe.Pointer(h.cq)), uintptr(unsafe.Pointer(&miss)), 0, 0) == hot.DeliveryDone {
			if miss.err != int32(fi.ENOMSG) {
				t.Fatalf("an error %d", miss.err)
			}
		}
		for e, ok := h.pop(); ok; e, ok = h.pop() {
			if e.Len > guarded {
				t.Fatalf("a completion of %d bytes", e.Len)
			}
		}
	})
}
