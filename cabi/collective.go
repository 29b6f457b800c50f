package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/collective"
)

// Vectors have one element at most.
//
//export weftGoCollectiveMsg
func weftGoCollectiveMsg(ep C.uint64_t, msg *C.struct_fi_msg_collective, out *C.struct_fi_ioc, outDescs *unsafe.Pointer,
	outs C.size_t, flags C.uint64_t) (rc C.int64_t) {
	defer guard("collective operation", &rc)
	in := view[C.struct_fi_ioc](unsafe.Pointer(msg.msg_iov), msg.iov_count)
	to := view[C.struct_fi_ioc](unsafe.Pointer(out), outs)
	if msg.iov_count > 1 || outs > 1 || len(in) != int(msg.iov_count) || len(to) != int(outs) {
		return C.int64_t(fi.EINVAL.Code())
	}
	args := provider.CollectiveArgs{
		Kind: kindFromC(C.int(msg.coll)), Datatype: fi.Datatype(msg.datatype), Op: fi.Op(msg.op),
		Group: fi.Addr(msg.coll_addr), Root: fi.Addr(msg.root_addr), Flags: uint64(flags),
		Context: uint64(uintptr(msg.context)),
	}
	if len(to) != 0 {
		args.Result, args.Count = uintptr(to[0].addr), uint64(to[0].count)
		copy(args.Descs[1:], view[uint64](unsafe.Pointer(outDescs), 1))
	}
	if len(in) != 0 {
		args.Buf, args.Count = uintptr(in[0].addr), uint64(in[0].count)
		copy(args.Descs[:1], view[uint64](unsafe.Pointer(msg.desc), 1))
	}
	return C.int64_t(result(collect(ep, &args)))
}

//export weftGoCollective
func weftGoCollective(ep C.uint64_t, kind C.int, buf, desc unsafe.Pointer, count C.size_t, out, outDesc unsafe.Pointer,
	group, root C.uint64_t, datatype, op C.int, flags C.uint64_t, context unsafe.Pointer) (rc C.int64_t) {
	defer guard("collective operation", &rc)
	return C.int64_t(result(collect(ep, &provider.CollectiveArgs{
		Kind: kindFromC(kind), Buf: uintptr(buf), Count: uint64(count), Result: uintptr(out),
		Descs: [2]uint64{uint64(uintptr(desc)), uint64(uintptr(outDesc))}, Group: fi.Addr(group), Root: fi.Addr(root),
		Datatype: fi.Datatype(datatype), Op: fi.Op(op), Flags: uint64(flags), Context: uint64(uintptr(context)),
	})))
}

func collect(ep C.uint64_t, args *provider.CollectiveArgs) error {
	e, err := objectOf[member](ep)
	if err != nil {
		return err
	}
	return e.Collective(args)
}

// member is an endpoint that may be a member of groups.
type member interface {
	Join(addr fi.Addr, set *provider.AVSet, flags, context uint64) (*provider.Group, error)
	Collective(a *provider.CollectiveArgs) error
	AllToAllV(a *provider.AllToAllVArgs) error
	AllToAllVInit(a *provider.AllToAllVArgs) (*provider.AllToAllVRequest, error)
	Members(group fi.Addr) (int, error)
	GroupOf(group fi.Addr) (*provider.Group, error)
}

//export weftGoAllToAllV
func weftGoAllToAllV(ep C.uint64_t, a *C.struct_weft_alltoallv) (rc C.int64_t) {
	defer guard("alltoallv", &rc)
	e, err := objectOf[member](ep)
	if err != nil {
		return C.int64_t(result(err))
	}
	args, err := vectorArgs(e, a)
	if err == nil {
		err = e.AllToAllV(&args)
	}
	return C.int64_t(result(err))
}

// vectorLeast is the bytes of struct weft_alltoallv without the counter of arrivals, which programs may not know.
const vectorLeast = C.size_t(unsafe.Offsetof(C.struct_weft_alltoallv{}.arrived))

// vectorArgs converts the arguments of an alltoallv; its arrays are C's.
func vectorArgs(e member, a *C.struct_weft_alltoallv) (args provider.AllToAllVArgs, err error) {
	if a.size < vectorLeast {
		log.Warnf(log.EPData, "alltoallv: a structure of %d bytes, expected %d", uint64(a.size),
			uint64(vectorLeast))
		return args, fi.EINVAL
	}
	n, err := e.Members(fi.Addr(a.coll_addr))
	if err != nil {
		return args, err
	}
	// NULL is no array, which is refused.
	array := func(p *C.uint64_t) []uint64 { return view[uint64](unsafe.Pointer(p), C.size_t(n)) }
	args = provider.AllToAllVArgs{
		Result: uintptr(a.result), ResultCounts: array(a.result_counts), ResultDispls: array(a.result_displs),
		InPlace: uintptr(a.buf) == ^uintptr(0), Elem: uint64(a.elem), Group: fi.Addr(a.coll_addr),
		Flags: uint64(a.flags), Context: uint64(uintptr(a.context)),
		Descs: [2]uint64{0, uint64(uintptr(a.result_desc))},
	}
	if a.size >= C.sizeof_struct_weft_alltoallv {
		if args.Arrived, err = counterOf(a.arrived); err != nil {
			return args, err
		}
	}
	if !args.InPlace {
		args.Buf, args.Counts, args.Displs, args.Descs[0] = uintptr(a.buf), array(a.counts), array(a.displs),
			uint64(uintptr(a.desc))
	}
	return args, nil
}

// Gives the handle of a persistent alltoallv, which no address is.
//
//export weftGoAllToAllVInit
func weftGoAllToAllVInit(ep C.uint64_t, a *C.struct_weft_alltoallv, request **C.struct_weft_alltoallv_req) (rc C.int) {
	defer guard("alltoallv_init", &rc)
	e, err := objectOf[member](ep)
	if err != nil {
		return result(err)
	}
	args, err := vectorArgs(e, a)
	if err != nil {
		return result(err)
	}
	r, err := e.AllToAllVInit(&args)
	if err != nil {
		return result(err)
	}
	h, err := handles.add(r)
	if err == nil {
		storeAddr(unsafe.Pointer(request), h)
	}
	return result(err)
}

//export weftGoAllToAllVStart
func weftGoAllToAllVStart(request C.uint64_t) (rc C.int64_t) {
	defer guard("alltoallv_start", &rc)
	r, err := objectOf[*provider.AllToAllVRequest](request)
	if err == nil {
		err = r.Start()
	}
	return C.int64_t(result(err))
}

//export weftGoAllToAllVFree
func weftGoAllToAllVFree(request C.uint64_t) (rc C.int) {
	defer guard("alltoallv_free", &rc)
	r, err := objectOf[*provider.AllToAllVRequest](request)
	if err == nil {
		handles.remove(uint64(request))
		r.Free()
	}
	return result(err)
}

// kindFromC converts an enum fi_collective_op. What is none becomes Kinds, which
// is refused.
func kindFromC(kind C.int) collective.Kind {
	if kind < 0 || kind >= C.int(collective.Kinds) {
		return collective.Kinds
	}
	return collective.Kind(kind)
}

//export weftGoQueryCollective
func weftGoQueryCollective(domain C.uint64_t, coll C.int, attr *C.struct_fi_collective_attr,
	flags C.uint64_t) (rc C.int) {
	defer guard("fi_query_collective", &rc)
	if attr == nil || attr.mode != 0 {
		return result(fi.EINVAL)
	}
	switch {
	case flags == C.FI_SCATTER && coll == C.FI_ALLREDUCE:
		coll = C.FI_REDUCE_SCATTER
	case flags != 0 && (flags != C.FI_SCATTER || coll != C.FI_REDUCE_SCATTER):
		return result(fi.EBADFLAGS)
	}
	n, s, m, err := provider.QueryCollective(kindFromC(coll), fi.Datatype(attr.datatype), fi.Op(attr.op))
	if err != nil {
		return result(err)
	}
	attr.datatype_attr.count, attr.datatype_attr.size, attr.max_members = C.size_t(n), C.size_t(s), C.size_t(m)
	return 0
}

// Of collective groups: there is no other multicast. The context of the event that follows is that of self.
//
//export weftGoJoin
func weftGoJoin(
	ep C.uint64_t, addr unsafe.Pointer, flags C.uint64_t, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_join_collective", &rc)
	where := (*C.struct_fi_collective_addr)(addr)
	switch {
	case flags&C.FI_COLLECTIVE == 0:
		return result(fi.ENOSYS)
	case where == nil || where.set == nil:
		return result(fi.EINVAL)
	}
	e, err := objectOf[member](ep)
	if err != nil {
		return result(err)
	}
	s, err := objectOf[*provider.AVSet](C.weft_handle_of(&where.set.fid))
	if err != nil {
		return result(err)
	}
	o := (*C.struct_weft_mc_obj)(self)
	g, err := e.Join(fi.Addr(where.coll_addr), s, uint64(flags), uint64(uintptr(o.fid.fid.context)))
	if err != nil {
		return result(err)
	}
	o.fid.fi_addr = C.fi_addr_t(g.Addr())
	out.handle, err = enter(g)
	return result(err)
}

// Notifies the members of the group, and names self in the event that follows.
//
//export weftGoGroupNotify
func weftGoGroupNotify(group C.uint64_t, self unsafe.Pointer) (rc C.int) {
	defer guard("fi_join_collective", &rc)
	g, err := objectOf[*provider.Group](group)
	if err != nil {
		return result(err)
	}
	g.Notify(uintptr(self))
	return 0
}

//export weftGoAVSetOpen
func weftGoAVSetOpen(
	av C.uint64_t, attr *C.struct_fi_av_set_attr, _ unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_av_set", &rc)
	a, err := objectOf[*provider.AV](av)
	if err != nil {
		return result(err)
	}
	if attr.comm_key == nil && attr.comm_key_size != 0 {
		return result(fi.EINVAL)
	}
	s, err := a.OpenSet(&fi.AVSetAttr{
		Count: uint64(attr.count), Start: fi.Addr(attr.start_addr), End: fi.Addr(attr.end_addr),
		Stride:  uint64(attr.stride),
		CommKey: view[byte](unsafe.Pointer(attr.comm_key), attr.comm_key_size), Flags: uint64(attr.flags),
	})
	if err != nil {
		return result(err)
	}
	out.handle, err = enter(s)
	return result(err)
}

//export weftGoAVSetUnion
func weftGoAVSetUnion(dst, src C.uint64_t) (rc C.int) {
	defer guard("fi_av_set_union", &rc)
	return combine(dst, src, (*provider.AVSet).Union)
}

//export weftGoAVSetIntersect
func weftGoAVSetIntersect(dst, src C.uint64_t) (rc C.int) {
	defer guard("fi_av_set_intersect", &rc)
	return combine(dst, src, (*provider.AVSet).Intersect)
}

//export weftGoAVSetDiff
func weftGoAVSetDiff(dst, src C.uint64_t) (rc C.int) {
	defer guard("fi_av_set_diff", &rc)
	return combine(dst, src, (*provider.AVSet).Diff)
}

func combine(dst, src C.uint64_t, with func(dst, src *provider.AVSet) error) C.int {
	d, err := objectOf[*provider.AVSet](dst)
	if err != nil {
		return result(err)
	}
	s, err := objectOf[*provider.AVSet](src)
	if err != nil {
		return result(err)
	}
	return result(with(d, s))
}

//export weftGoAVSetAddr
func weftGoAVSetAddr(set C.uint64_t, addr *C.fi_addr_t) (rc C.int) {
	defer guard("fi_av_set_addr", &rc)
	s, err := objectOf[*provider.AVSet](set)
	if err == nil {
		*addr = C.fi_addr_t(s.Addr())
	}
	return result(err)
}

//export weftGoAVSetInsert
func weftGoAVSetInsert(set, addr C.uint64_t) (rc C.int) {
	defer guard("fi_av_set_insert", &rc)
	s, err := objectOf[*provider.AVSet](set)
	if err != nil {
		return result(err)
	}
	return result(s.Insert(fi.Addr(addr)))
}

//export weftGoAVSetRemove
func weftGoAVSetRemove(set, addr C.uint64_t) (rc C.int) {
	defer guard("fi_av_set_remove", &rc)
	s, err := objectOf[*provider.AVSet](set)
	if err != nil {
		return result(err)
	}
	return result(s.Remove(fi.Addr(addr)))
}
