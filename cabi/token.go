package main

// #include "token.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/token"
)

// Handles of fids are 0 if these are not weft's, those of endpoints also for other objects.
//
//export weftGoTokenPack
func weftGoTokenPack(mr C.uint64_t, attr *C.struct_weft_token_attr, to unsafe.Pointer, size *C.size_t) (rc C.int) {
	defer guard("pack a token", &rc)
	m, err := objectOf[*provider.MR](mr)
	if err != nil {
		return result(err)
	}
	var a provider.TokenAttr
	if attr != nil {
		a.Agent = text(attr.agent)
		if attr.ep != nil {
			if a.EP, err = objectOf[*provider.Endpoint](C.weft_token_endpoint(attr.ep)); err != nil {
				return result(err)
			}
		}
	}
	t, err := m.Token(&a)
	if err == nil {
		err = put(t, to, size)
	}
	return result(err)
}

//export weftGoTokenText
func weftGoTokenText(t unsafe.Pointer, n C.size_t, to *C.char, size *C.size_t) (rc C.int) {
	defer guard("text of a token", &rc)
	if n > token.MaxLen {
		return result(fi.EINVAL)
	}
	return result(put(append(token.AppendText(nil, view[byte](t, n)), 0), unsafe.Pointer(to), size))
}

//export weftGoTokenOpen
func weftGoTokenOpen(
	ep C.uint64_t, b unsafe.Pointer, n C.size_t, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("open a token", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	t := provider.Token(view[byte](b, min(n, token.MaxLen+1+C.size_t(token.MaxText))))
	if token.IsText(t) {
		if err := t.UnmarshalText(t); err != nil {
			t = nil // which Open refuses, with a line of the log
		}
	}
	r, err := e.OpenToken(t)
	if err != nil {
		return result(err)
	}
	(*C.struct_fid)(self).ops = &C.weft_remote_fi_ops
	out.handle, err = enter(r)
	return result(err)
}

//export weftGoTokenInfo
func weftGoTokenInfo(remote C.uint64_t, to *C.struct_weft_remote_info, size C.size_t) (rc C.int) {
	defer guard("info of a remote region", &rc)
	r, err := objectOf[*provider.Remote](remote)
	if err != nil {
		return result(err)
	}
	i, out := r.Info(), new(C.struct_weft_remote_info)
	out.addr, out.key, out.base, out.length = C.fi_addr_t(i.Addr), C.uint64_t(i.Key), C.uint64_t(i.Base),
		C.uint64_t(i.Length)
	out.rights, out.memory, out.way = C.uint64_t(i.Rights), uint32(i.Kind), uint32(i.Way)
	copy(unsafe.Slice((*byte)(&out.device[0]), len(out.device)), i.Device[:])
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&out.agent[0])), len(out.agent)-1), i.Agent)
	for w, why := range i.Why {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&out.why[w][0])), len(out.why[w])-1), why)
	}
	copy(view[byte](unsafe.Pointer(to), size), view[byte](unsafe.Pointer(out), C.sizeof_struct_weft_remote_info))
	return 0
}

//export weftGoTokenList
func weftGoTokenList(ep C.uint64_t, local *C.struct_weft_local_piece, remote *C.struct_weft_remote_piece,
	count C.size_t, out *C.uint64_t, shape *C.uintptr_t) (rc C.int) {
	defer guard("prepare a list", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	if count > C.WEFT_LIST_MAX {
		return result(log.Reject(log.EPData, fi.EINVAL,
			"prepare a list: %d pieces, at most %d", count, C.WEFT_LIST_MAX))
	}
	here, there := view[C.struct_weft_local_piece](unsafe.Pointer(local), count),
		view[C.struct_weft_remote_piece](unsafe.Pointer(remote), count)
	for i := range there {
		h, t := &here[i], &there[i]
		switch n, m := max(h.count, 1), max(t.count, 1); { // without a count there is one
		case t.remote == nil:
			return result(log.Reject(log.EPData, fi.EINVAL, "prepare a list: piece %d has no remote region", i))
		case n != m || h.len != t.len:
			return result(log.Reject(log.EPData, fi.EINVAL,
				"prepare a list: piece %d: %d elements of %d bytes here, %d of %d there", i, n, h.len, m, t.len))
		}
	}
	var last *C.struct_weft_remote
	var opened *provider.Remote
	l, err := e.NewListOf(int(count), func(i int, p *provider.Piece) error {
		h, t := &here[i], &there[i]
		if t.remote != last {
			if opened, err = objectOf[*provider.Remote](C.weft_handle_of(&t.remote.fid)); err != nil {
				return err
			}
			last = t.remote
		}
		p.Local, p.LocalStride = uintptr(h.addr), uint64(h.stride)
		p.Remote, p.Addr, p.RemoteStride = opened, uint64(t.addr), uint64(t.stride)
		p.Len, p.Count = uint64(h.len), uint64(h.count)
		if h.desc != nil {
			return p.Describe(uint64(uintptr(h.desc)))
		}
		return nil
	})
	if err != nil {
		return result(err)
	}
	*shape = C.uintptr_t(l.Shape().Address())
	*out, err = enter(l)
	return result(err)
}

// The bits of a list's post, as the data plane has them.
var _ = [1]struct{}{}[C.WEFT_READ^hot.ListRead|C.WEFT_PICK_BITS^hot.ListBits|C.WEFT_NOTE_ON_ERROR^hot.ListNoteOnError]

// postList posts a list: all elements, or its picks. The copies are made, and the notification is left, where the code
// is hot.PostNote.
func postList(p *C.struct_weft_post, code C.uint32_t) error {
	l, err := objectOf[*provider.List](p.list)
	switch {
	case err != nil:
		return err
	case p.op&^(C.WEFT_READ|C.WEFT_PICK_BITS|C.WEFT_NOTE_ON_ERROR) != 0:
		return log.Reject(log.EPData, fi.EINVAL, "post of a list: operation %#x", p.op)
	case p.count > C.WEFT_LIST_MAX || p.picks != nil && p.count == 0:
		return log.Reject(log.EPData, fi.EINVAL,
			"post of a list: %d picks, 1 to %d are possible", p.count, C.WEFT_LIST_MAX)
	}
	a := provider.ListArgs{
		Read: p.op&C.WEFT_READ != 0, Flags: uint64(p.flags), Context: uint64(p.context),
		Note: noteAt(unsafe.Pointer(p.note), C.size_t(p.note_len)), NoteOnError: p.op&C.WEFT_NOTE_ON_ERROR != 0,
	}
	switch {
	case code == hot.PostNote:
		l.Noted(&a, uint64(p.len))
		return nil
	case p.picks == nil:
	case p.op&C.WEFT_PICK_BITS != 0:
		a.Bits = view[uint64](unsafe.Pointer(p.picks), C.size_t(p.count+63)/64)
	default:
		a.Picks = view[uint32](unsafe.Pointer(p.picks), C.size_t(p.count))
	}
	return l.Post(&a)
}

// postNote posts a notification alone.
func postNote(ep C.uint64_t, p *C.struct_weft_post) error {
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return err
	}
	return e.Notify(&provider.NotifyArgs{
		Dest: fi.Addr(p.dest), Tag: uint64(p.note_tag), Note: noteAt(unsafe.Pointer(p.note), C.size_t(p.note_len)),
		Flags: uint64(p.flags), Context: uint64(p.context),
	})
}

//export weftGoTokenCredit
func weftGoTokenCredit(ep C.uint64_t, source C.uint32_t) {
	defer guardVoid("credit of notifications")
	entered()
	if e, err := objectOf[*provider.Endpoint](ep); err == nil {
		e.CreditNotes(uint32(source))
	}
}

// noteAt views a notification, nil for NULL. One that is too long is seen to be so.
func noteAt(note unsafe.Pointer, n C.size_t) []byte {
	if note == nil {
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	return view[byte](note, min(n, provider.MaxNote+1))
}

//export weftGoTokenTag
func weftGoTokenTag(list, tag C.uint64_t) (rc C.int) {
	defer guard("tag a list", &rc)
	l, ok := handles.get(uint64(list)).(*provider.List)
	if !ok {
		return result(fi.EINVAL)
	}
	l.SetTag(uint64(tag))
	return 0
}

//export weftGoTokenAgent
func weftGoTokenAgent(ep C.uint64_t, name *C.char) (rc C.int) {
	defer guard("name of an endpoint's own", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err == nil {
		err = e.SetAgent(text(name))
	}
	return result(err)
}

//export weftGoTokenNotes
func weftGoTokenNotes(ep C.uint64_t, entries *C.struct_weft_note, most C.size_t) (rc C.int64_t) {
	defer guard("take notifications", &rc)
	entered()
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return C.int64_t(result(err))
	}
	to := view[C.struct_weft_note](unsafe.Pointer(entries), most)
	short := false
	n, err := e.TakeNotes(len(to), func(i int, n *provider.Note) bool {
		t := &to[i]
		t.len = C.size_t(len(n.Data))
		if t.len > t.size {
			short = i == 0
			return false
		}
		copy(view[byte](t.data, t.len), n.Data)
		t.src, t.tag, t.op, t.err = C.fi_addr_t(n.Src), C.uint64_t(n.Tag), C.uint32_t(n.Op), C.int(n.Err)
		t.namelen = C.size_t(copy(unsafe.Slice((*byte)(&t.name[0]), len(t.name)), n.Name))
		agent := unsafe.Slice((*byte)(unsafe.Pointer(&t.agent[0])), len(t.agent))
		agent[copy(agent[:len(agent)-1], n.Agent)] = 0
		return true
	})
	switch {
	case err != nil:
		return C.int64_t(result(err))
	case short:
		return C.int64_t(result(fi.ETOOSMALL))
	}
	return C.int64_t(n)
}

//export weftGoTokenBind
func weftGoTokenBind(ep, object, flags C.uint64_t) (rc C.int) {
	defer guard("bind for notifications", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	switch o := handles.get(uint64(object)).(type) {
	case *cq.Queue:
		if err = fi.EBADFLAGS; flags == 0 {
			err = e.BindNotes(o)
		}
	case *cq.Counter:
		if err = fi.EBADFLAGS; flags&^C.WEFT_NOTES_COUNTED == 0 {
			err = e.CountNotes(o, flags != 0)
		}
	default:
		err = fi.EINVAL
	}
	return result(err)
}
