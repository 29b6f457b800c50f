package ibv

// #include "ibv.h"
import "C"

import (
	"unsafe"
)

// PD is a protection domain.
type PD struct{ p *C.struct_ibv_pd }

// AllocPD makes a protection domain.
func (x *Context) AllocPD() (*PD, error) {
	d := new(PD)
	return d, check("allocate protection domain", C.weft_ibv_alloc_pd(x.p, &d.p))
}

// Close ends the domain.
func (d *PD) Close() error { return check("deallocate protection domain", C.weft_ibv_dealloc_pd(d.p)) }

// Access rights of memory and queue pairs.
const (
	LocalWrite  = C.IBV_ACCESS_LOCAL_WRITE
	RemoteWrite = C.IBV_ACCESS_REMOTE_WRITE
	RemoteRead  = C.IBV_ACCESS_REMOTE_READ
)

// MR is registered memory.
type MR struct {
	p          *C.struct_ibv_mr
	LKey, RKey uint32
}

// Register registers n bytes at addr. Errors: ENOMEM beyond the limit on locked
// memory or of the device; EFAULT for an address that is not mapped.
func (d *PD) Register(addr uint64, n uint64, access uint32) (*MR, error) {
	m := new(MR)
	var l, r C.uint32_t
	rc := C.weft_ibv_reg_mr(d.p, C.uint64_t(addr), C.uint64_t(n), C.uint32_t(access), &m.p, &l, &r)
	m.LKey, m.RKey = uint32(l), uint32(r)
	return m, check("register memory", rc)
}

// Close ends the registration; no access goes through once it returns.
func (m *MR) Close() error { return check("deregister memory", C.weft_ibv_dereg_mr(m.p)) }

// Channel makes a file descriptor readable when completions come.
type Channel struct {
	p  *C.struct_ibv_comp_channel
	FD int // non-blocking
}

// NewChannel makes a channel.
func (x *Context) NewChannel() (*Channel, error) {
	ch := new(Channel)
	var fd C.int
	rc := C.weft_ibv_create_channel(x.p, &ch.p, &fd)
	ch.FD = int(fd)
	return ch, check("create completion channel", rc)
}

// Drain takes and acknowledges all events and returns how many.
func (ch *Channel) Drain() int { return int(C.weft_ibv_drain_channel(ch.p)) }

// Close destroys the channel; its queues were destroyed before.
func (ch *Channel) Close() error {
	return check("destroy completion channel", C.weft_ibv_destroy_channel(ch.p))
}

// CQ is a completion queue.
type CQ struct {
	c C.struct_weft_cq
	// Stamped reports whether completions carry the device's clock.
	Stamped bool
}

// NewCQ makes a completion queue of at least entries places; ch may be nil.
// With stamps it asks for time stamps, which it does without if the device has none.
func (x *Context) NewCQ(entries int, ch *Channel, stamps bool) (*CQ, error) {
	q := new(CQ)
	var cp *C.struct_ibv_comp_channel
	if ch != nil {
		cp = ch.p
	}
	var s C.int
	if stamps {
		s = 1
	}
	rc := C.weft_ibv_create_cq(x.p, C.int(entries), cp, s, &q.c)
	q.Stamped = q.c.ex != nil
	return q, check("create completion queue", rc)
}

// Arm asks the channel for an event with the next completion.
func (q *CQ) Arm() error { return check("arm completion queue", C.weft_ibv_arm(q.c.cq)) }

// Close destroys the queue.
func (q *CQ) Close() error { return check("destroy completion queue", C.weft_ibv_destroy_cq(q.c.cq)) }

// SRQ is a shared receive queue.
type SRQ struct{ p *C.struct_ibv_srq }

// NewSRQ makes a shared receive queue of depth buffers.
func (d *PD) NewSRQ(depth int) (*SRQ, error) {
	s := new(SRQ)
	return s, check("create shared receive queue", C.weft_ibv_create_srq(d.p, C.uint32_t(depth), &s.p))
}

// Close destroys the queue.
func (s *SRQ) Close() error {
	return check("destroy shared receive queue", C.weft_ibv_destroy_srq(s.p))
}

// QPConfig says how a queue pair is made.
type QPConfig struct {
	Send, Recv        *CQ
	SRQ               *SRQ // nil: its own receive queue
	Datagram          bool // unreliable datagram; else reliable connected
	MaxSend, MaxRecv  int
	MaxSGE, MaxInline int
}

// QP is a queue pair.
type QP struct {
	p         *C.struct_ibv_qp
	Num       uint32
	MaxInline int
}

// NewQP makes a queue pair in state RESET. Errors: ENOMEM when the device or
// the limit on locked memory has no room for another; EINVAL beyond a limit.
func (d *PD) NewQP(c QPConfig) (*QP, error) {
	a := C.struct_weft_qp_attr{
		send_cq: c.Send.c.cq, recv_cq: c.Recv.c.cq, _type: C.IBV_QPT_RC,
		max_send: C.uint32_t(c.MaxSend), max_recv: C.uint32_t(c.MaxRecv),
		max_sge: C.uint32_t(c.MaxSGE), max_inline: C.uint32_t(c.MaxInline),
	}
	if c.SRQ != nil {
		a.srq = c.SRQ.p
	}
	if c.Datagram {
		a._type = C.IBV_QPT_UD
	}
	q := new(QP)
	var num C.uint32_t
	rc := C.weft_ibv_create_qp(d.p, &a, &q.p, &num)
	q.Num, q.MaxInline = uint32(num), int(a.max_inline)
	return q, check("create queue pair", rc)
}

// Close destroys the queue pair.
func (q *QP) Close() error { return check("destroy queue pair", C.weft_ibv_destroy_qp(q.p)) }

// Init brings the queue pair to INIT: with access rights for peers if it is
// connected, with a key if it is for datagrams.
func (q *QP) Init(port int, access, qkey uint32) error {
	return check("initialise queue pair", C.weft_ibv_init_qp(q.p, C.uint8_t(port), 0, C.uint32_t(access),
		C.uint32_t(qkey)))
}

// Path is where a peer's port is.
type Path struct {
	GID       [16]byte
	Global    bool // use GID; required with RoCE
	LID       uint16
	SGIDIndex int
	Port      int // the own one
	SL        uint8
	Class     uint8 // traffic class
}

func (p Path) c() C.struct_weft_path {
	c := C.struct_weft_path{
		lid: C.uint16_t(p.LID), sgid_index: C.uint8_t(p.SGIDIndex), sl: C.uint8_t(p.SL),
		hop_limit: 64, traffic_class: C.uint8_t(p.Class), port: C.uint8_t(p.Port),
	}
	if p.Global {
		c.global = 1
	}
	for n, b := range p.GID {
		c.gid[n] = C.uint8_t(b)
	}
	return c
}

// Receive describes the receiving half of a connection.
type Receive struct {
	Path          Path
	MTU           int    // 1 to 5: 256 to 4096 bytes
	QP, PSN       uint32 // the peer's
	MaxReadAtomic int    // reads and atomics of the peer in progress at a time
	RNRTimer      int    // code of the time that a sender without receive buffer waits
}

// ToReceive brings the queue pair to RTR; a datagram queue pair takes the zero Receive.
func (q *QP) ToReceive(r Receive) error {
	a := C.struct_weft_rtr{
		path: r.Path.c(), mtu: C.uint32_t(r.MTU), qp_num: C.uint32_t(r.QP), psn: C.uint32_t(r.PSN),
		max_dest_rd_atomic: C.uint32_t(r.MaxReadAtomic), min_rnr_timer: C.uint32_t(r.RNRTimer),
	}
	return check("ready queue pair to receive", C.weft_ibv_rtr_qp(q.p, &a))
}

// Send describes the sending half of a connection.
type Send struct {
	PSN           uint32
	Timeout       int // an acknowledgement is missed after 4.096 us * 2^Timeout
	Retries       int // 0 to 7
	RNRRetries    int // 7: for ever
	MaxReadAtomic int
}

// ToSend brings the queue pair to RTS.
func (q *QP) ToSend(s Send) error {
	a := C.struct_weft_rts{
		psn: C.uint32_t(s.PSN), timeout: C.uint32_t(s.Timeout), retry_cnt: C.uint32_t(s.Retries),
		rnr_retry: C.uint32_t(s.RNRRetries), max_rd_atomic: C.uint32_t(s.MaxReadAtomic),
	}
	return check("ready queue pair to send", C.weft_ibv_rts_qp(q.p, &a))
}

// ToError stops the queue pair: what was posted is flushed.
func (q *QP) ToError() error { return check("stop queue pair", C.weft_ibv_error_qp(q.p)) }

// Reset takes the queue pair, of which nothing is posted any more, back to RESET.
func (q *QP) Reset() error { return check("reset queue pair", C.weft_ibv_reset_qp(q.p)) }

// Broken asks the device whether the queue pair is in an error state.
func (q *QP) Broken() (bool, error) {
	var state C.uint32_t
	err := check("query queue pair", C.weft_ibv_query_qp(q.p, &state))
	return state == C.IBV_QPS_ERR || state == C.IBV_QPS_SQE, err
}

// AH is an address handle for datagrams.
type AH struct{ p *C.struct_ibv_ah }

// NewAH makes an address handle. On Ethernet the kernel finds the peer's
// hardware address, which may take a second. Errors: EHOSTUNREACH, ENETUNREACH,
// ETIMEDOUT and the like where it finds none.
func (d *PD) NewAH(p Path) (*AH, error) {
	a, c := new(AH), p.c()
	return a, check("create address handle", C.weft_ibv_create_ah(d.p, &c, &a.p))
}

// Close destroys the address handle.
func (a *AH) Close() error { return check("destroy address handle", C.weft_ibv_destroy_ah(a.p)) }

// PostReceive gives the queue pair's own receive queue a buffer.
func (q *QP) PostReceive(s SGE, id uint64) error {
	return check("post receive", C.weft_ibv_post_recv(q.p, C.uint64_t(s.Addr), C.uint32_t(s.Len), C.uint32_t(s.LKey),
		C.uint64_t(id)))
}

// SendDatagram sends one datagram; its completion comes with id.
func (q *QP) SendDatagram(a *AH, qp, qkey uint32, s SGE, id uint64) error {
	return check("post datagram", C.weft_ibv_send_ud(q.p, a.p, C.uint32_t(qp), C.uint32_t(qkey),
		C.uint64_t(s.Addr), C.uint32_t(s.Len), C.uint32_t(s.LKey), C.uint64_t(id)))
}

// WrapQP is a queue pair (struct ibv_qp) that other code has made, with its
// number and the bytes it takes inline. It is not closed here.
func WrapQP(p unsafe.Pointer, num uint32, inline int) *QP {
	return &QP{p: (*C.struct_ibv_qp)(p), Num: num, MaxInline: inline}
}

// WrapCQ is a completion queue (struct ibv_cq) likewise.
func WrapCQ(p unsafe.Pointer) *CQ { return &CQ{c: C.struct_weft_cq{cq: (*C.struct_ibv_cq)(p)}} }

// WrapContext is an open device (struct ibv_context) likewise.
func WrapContext(p unsafe.Pointer) *Context { return &Context{p: (*C.struct_ibv_context)(p)} }

// WrapSRQ is a shared receive queue (struct ibv_srq) likewise.
func WrapSRQ(p unsafe.Pointer) *SRQ { return &SRQ{p: (*C.struct_ibv_srq)(p)} }
