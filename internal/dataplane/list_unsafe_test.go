package dataplane

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// lists are notes with a list of pieces of the region, to and from local memory of its size.
type lists struct {
	*notes
	local   []byte
	list    List
	batches Batches
	links   [2]Link
}

func newLists(t testing.TB) *lists {
	l := &lists{notes: newNotes(t)}
	l.local = l.bytes(regionLen)
	l.ep.Links, l.ep.LinkLimit = uintptr(unsafe.Pointer(&l.links)), 2
	l.list.Dest, l.list.Flat, l.list.Direct, l.list.Read, l.list.Write = senderAddr, true, true, true, true
	l.list.Batches = l.batches.Address()
	return l
}

// add appends a run.
func (l *lists) add(count uint32, local, remote int, n, here, there uint64) {
	l.list.Runs = append(l.list.Runs, Run{
		First: l.list.Count, Count: count, Local: uint64(at(l.local[local:])), Remote: uint64(remote), Len: n,
		Here: here, There: there, Key: regionKey, Direct: true,
	})
	l.list.Flat = l.list.Flat && count == 1
	l.list.Count += count
	l.list.Bytes += uint64(count) * n
}

// post is a post of the list.
func (l *lists) post(op uint32, flags uint64) hot.Post {
	return hot.Post{
		EP: uintptr(unsafe.Pointer(l.ep)), Shape: l.list.Address(), Op: op, Flags: flags | fi.Completion, Context: 7,
	}
}

// run posts, makes the copies as the shim does, and returns how many there were.
func (l *lists) run(p *hot.Post) (copies int, code uintptr) {
	for {
		if code = postList(p); code != hot.PostCopy {
			return copies, code
		}
		copies++
		here := unsafe.Slice((*hw.Span)(pointer(p.Copy.Here)), p.Copy.Pieces)
		there := unsafe.Slice((*hw.Span)(pointer(p.Copy.There)), p.Copy.Pieces)
		n := uint64(0)
		for i := range here {
			to, from := here[i], there[i]
			if p.Copy.Write != 0 {
				to, from = from, to
			}
			move(uintptr(to.Addr), uintptr(from.Addr), uintptr(to.Len))
			n += to.Len
		}
		if n != p.Copy.Len || p.Copy.PID != 1 || len(here) > hw.MaxPieces {
			l.t.Fatalf("copy %+v of %d bytes", p.Copy, n)
		}
		p.Copy.Error = 0
	}
}

// claims counts the claims of the region.
func (l *lists) claims() (n int) {
	first := l.peer.Keys + uintptr(l.peer.KeyCount)*unsafe.Sizeof(hot.Key{})
	all := unsafe.Slice((*hot.Claim)(pointer(first)), hot.Claims)
	for i := range all {
		if all[i].Word != 0 {
			n++
		}
	}
	return n
}

// TestListAgainstModel posts random lists, whole and by picks of both kinds, with and without notifications, and
// compares the memory on both sides with a model.
func TestListAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 7))
	for range 300 {
		l := newLists(t)
		for at := 0; len(l.list.Runs) < 1+rnd.IntN(20); {
			n, count := rnd.IntN(40), 1+rnd.IntN(6)*rnd.IntN(2)
			step := n + rnd.IntN(20)
			if at += rnd.IntN(30); at+step*count > regionLen {
				break
			}
			l.add(uint32(count), at, at, uint64(n), uint64(step), uint64(step))
			at += step * count
		}
		l.add(1, regionLen-9, regionLen-9, 9, 0, 0)
		l.check(rnd)
	}
}

// check posts the list of a model.
func (l *lists) check(rnd *rand.Rand) {
	all := l.bytes(8 * int(l.list.Count))
	words := unsafe.Slice((*uint64)(pointer(at(l.bytes(1024)))), 128)
	numbers := unsafe.Slice((*uint32)(pointer(at(all))), 2*l.list.Count)
	for round := range 6 {
		for i := range l.local {
			l.local[i], l.region[i] = byte(rnd.Uint32()), byte(rnd.Uint32())
		}
		var picked []uint32
		clear(words)
		for n := range l.list.Count {
			if round%3 == 0 || rnd.IntN(2) == 0 || n+1 == l.list.Count {
				picked = append(picked, n)
				words[n/64] |= 1 << (n % 64)
			}
		}
		read := uint32(round & 1)
		p := l.post(read, 0)
		switch round % 3 {
		case 1:
			rnd.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
			copy(numbers, picked)
			p.Picks, p.Count = uintptr(unsafe.Pointer(&numbers[0])), uint64(len(picked))
		case 2:
			p.Op |= hot.ListBits
			p.Picks, p.Count = uintptr(unsafe.Pointer(&words[0])), uint64(l.list.Count)
		}
		if rnd.IntN(2) == 0 {
			p.Note, p.NoteLen = at(l.bytes(8)), 8
		}
		local, region, total := bytes.Clone(l.local), bytes.Clone(l.region), uint64(0)
		for _, n := range picked {
			run := 0
			el := l.list.At(n, &run)
			here := int(el.Local - uint64(at(l.local)))
			to, from := region[el.Remote:], local[here:]
			if read != 0 {
				to, from = local[here:], region[el.Remote:]
			}
			copy(to[:el.Len], from[:el.Len])
			total += el.Len
		}
		before, elements := l.thread(stats.ThreadListIPCBytes), l.links[0].Listed.Load()
		copies, code := l.run(&p)
		if code != hot.PostDone || copies != 1 || p.Len != total {
			l.t.Fatalf("round %d: code %d after %d copies of %d bytes", round, code, copies, p.Len)
		}
		if !bytes.Equal(l.local, local) || !bytes.Equal(l.region, region) {
			l.t.Fatalf("round %d: %d of %d elements: memory is wrong", round, len(picked), l.list.Count)
		}
		want := [2]uint64{fi.RMA | fi.Write, fi.RMA | fi.Read}[read]
		if e, ok := l.completed(); !ok || e.Context != 7 || e.Flags != want {
			l.t.Fatalf("completed with %+v, %v", e, ok)
		}
		n := l.thread(stats.ThreadListIPCBytes) - before
		if n != total || l.links[0].Listed.Load()-elements != uint64(len(picked)) {
			l.t.Fatalf("%d bytes counted", n)
		}
		l.serve()
		if list, _ := l.take(1, 8); (len(list) == 1) != (p.Note != 0) {
			l.t.Fatalf("%d notifications", len(list))
		}
		if n := l.claims(); n != 0 || l.batches[0].taken != 0 {
			l.t.Fatalf("%d claims are left", n)
		}
	}
}

// TestListInParts copies more pieces than one system call takes in several, and notifies behind the last.
func TestListInParts(t *testing.T) {
	l := newLists(t)
	for i := range 2000 {
		l.add(1, 2*i, regionLen-2-2*i, 2, 0, 0)
	}
	for i := range l.local {
		l.local[i] = byte(i >> 1)
	}
	p := l.post(0, fi.DeliveryComplete)
	if copies, code := l.run(&p); code != hot.PostDone || copies != 2 {
		t.Errorf("code %d after %d copies", code, copies)
	}
	for i := range 2000 {
		if at := regionLen - 2 - 2*i; l.region[at] != byte(i) || l.region[at+1] != byte(i) {
			t.Fatalf("element %d is %d", i, l.region[at])
		}
	}
}

// TestListIsTheRuntimes has the runtime post what is not for the data plane, and finds that nothing is left behind.
func TestListIsTheRuntimes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *lists, p *hot.Post)
		code   uintptr
	}{
		"memory of a device": {func(l *lists, p *hot.Post) { l.list.Direct = false }, hot.PostGo},
		"a way turned off":   {func(l *lists, p *hot.Post) { l.list.Batches = 0 }, hot.PostGo},
		"no right to write":  {func(l *lists, p *hot.Post) { l.list.Write = false }, hot.PostGo},
		"no right to read":   {func(l *lists, p *hot.Post) { p.Op, l.list.Read = hot.ListRead, false }, hot.PostGo},
		"no such operation":  {func(l *lists, p *hot.Post) { p.Op = 8 }, hot.PostGo},
		"a fence":            {func(l *lists, p *hot.Post) { p.Flags |= fi.Fence }, hot.PostGo},
		"injection":          {func(l *lists, p *hot.Post) { p.Flags |= fi.Inject }, hot.PostGo},
		"long":               {func(l *lists, p *hot.Post) { l.ep.CopyMax = 15 }, hot.PostGo},
		"no element":         {func(l *lists, p *hot.Post) { p.Picks, p.Count = at(l.local), 0 }, hot.PostGo},
		"one that is not here": {func(l *lists, p *hot.Post) {
			p.Picks, p.Count, l.local[0] = at(l.local), 1, 2
		}, hot.PostGo},
		"many picks":         {func(l *lists, p *hot.Post) { p.Picks, p.Count = 8, MaxElements+1 }, hot.PostGo},
		"another host":       {func(l *lists, p *hot.Post) { l.peer.Slots = 0 }, hot.PostGo},
		"the kernel refuses": {func(l *lists, p *hot.Post) { l.peer.PID = 0 }, hot.PostGo},
		"order":              {func(l *lists, p *hot.Post) { l.ep.Flags &^= hot.EPFast }, hot.PostGo},
		"the peer is gone":   {func(l *lists, p *hot.Post) { l.state[0] |= hot.RxGone }, hot.PostGo},
		"no region":          {func(l *lists, p *hot.Post) { l.list.Runs[1].Key++ }, hot.PostGo},
		"beyond it":          {func(l *lists, p *hot.Post) { l.list.Runs[1].Remote = regionLen - 7 }, hot.PostGo},
		"its right":          {func(l *lists, p *hot.Post) { l.key.Access = hot.KeyRead }, hot.PostGo},
		"no stream": {func(l *lists, p *hot.Post) {
			p.Note, p.NoteLen, l.peer.Link = at(l.local), 8, 0
		}, hot.PostGo},
		"a stream with others": {func(l *lists, p *hot.Post) {
			p.Note, p.NoteLen, l.out.Open = at(l.local), 8, 0
		}, hot.PostGo},
		"batches": {func(l *lists, p *hot.Post) {
			for i := range l.batches {
				l.batches[i].taken = 1
			}
		}, hot.PostGo},
	} {
		l := newLists(t)
		l.add(1, 0, 0, 8, 0, 0)
		l.add(1, 100, 200, 8, 0, 0)
		p := l.post(0, 0)
		c.change(l, &p)
		if copies, code := l.run(&p); code != c.code || copies != 0 {
			t.Errorf("%s: code %d after %d copies", name, code, copies)
		}
		if _, ok := l.completed(); ok || l.claims() != 0 || l.thread(stats.ThreadListDirect) != 0 {
			t.Errorf("%s: something has happened", name)
		}
		if name != "batches" && l.batches[0].taken != 0 {
			t.Errorf("%s: a batch is taken", name)
		}
	}
}

// TestListCopyFails gives up what it has when a copy fails, and does not ask a kernel again that refuses.
func TestListCopyFails(t *testing.T) {
	for _, errno := range []fi.Errno{fi.EFAULT, fi.EPERM} {
		l := newLists(t)
		l.add(1, 0, 0, 8, 0, 0)
		l.add(1, 100, 200, 8, 0, 0)
		p := l.post(0, 0)
		if code := postList(&p); code != hot.PostCopy || l.claims() != 1 {
			t.Fatalf("code %d, %d claims", code, l.claims())
		}
		p.Copy.Error = int32(errno)
		if code := postList(&p); code != hot.PostGo || l.claims() != 0 || l.batches[0].taken != 0 {
			t.Errorf("%v: code %d, %d claims", errno, code, l.claims())
		}
		if (l.peer.PID == 0) != (errno == fi.EPERM) {
			t.Errorf("%v: process %d", errno, l.peer.PID)
		}
	}
}

// TestListOfOne posts a list of one element as the read or write that it is.
func TestListOfOne(t *testing.T) {
	l := newLists(t)
	l.add(1, 0, 64, 8, 0, 0)
	l.list.Single, l.list.Batches = true, 0
	copy(l.local, "12345678")
	p := l.post(0, 0)
	if code := postList(&p); code != hot.PostDone || p.Kind&hot.PostListed == 0 {
		t.Fatalf("code %d", code)
	}
	l.serve()
	if string(l.region[64:72]) != "12345678" {
		t.Errorf("%q is there", l.region[64:72])
	}
	p = l.post(hot.ListRead, 0)
	p.Note, p.NoteLen = at(l.bytes(3)), 3
	copy(l.region[64:], "abcdefgh")
	if copies, code := l.run(&p); code != hot.PostDone || copies != 1 || string(l.local[:8]) != "abcdefgh" {
		t.Errorf("code %d, %q is read", code, l.local[:8])
	}
	l.serve()
	if list, _ := l.take(2, 8); len(list) != 1 || list[0].Op != hot.NoticeRead {
		t.Errorf("%d notifications", len(list))
	}
}
