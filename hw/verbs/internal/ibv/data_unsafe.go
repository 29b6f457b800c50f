package ibv

// #cgo noescape weft_ibv_poll
// #cgo nocallback weft_ibv_poll
// #include "ibv.h"
import "C"

import (
	"errors"
	"structs"
	"unsafe"
)

// MaxSGE is the number of pieces of local memory of one Op.
const MaxSGE = C.WEFT_SGE

// MaxGather is the number of pieces of a request of several operations (Op.With): with twice as many, requests that are
// twice as long would be half as many, but a queue pair has room for the longest in each place.
const MaxGather = C.WEFT_GATHER

// SGE is a piece of registered local memory.
type SGE struct {
	_    structs.HostLayout
	Addr uint64
	Len  uint32
	LKey uint32
}

// Op is one work request. It lies where C and Go both see it.
type Op struct {
	_          structs.HostLayout
	ID         uint64
	Opcode     uint32
	Flags      uint32
	Imm        uint32
	Pieces     uint32 // of SGE
	RemoteAddr uint64
	RKey       uint32
	With       uint32 // not 0: the next one goes in one request with it, and its bytes at the peer follow
	_          [3]uint64
	SGE        [MaxSGE]SGE
}

// Done is one completion.
type Done struct {
	_         structs.HostLayout
	ID        uint64
	Stamp     uint64 // device clock, 0 without
	Status    uint32 // 0: success; Opcode, Bytes, Imm and Flags are valid only then
	Opcode    uint32
	Bytes     uint32
	Imm       uint32
	QP        uint32
	SourceQP  uint32
	Flags     uint32
	VendorErr uint32
}

// Work requests, their flags, completions, their status.
const (
	OpSend       = C.IBV_WR_SEND
	OpWrite      = C.IBV_WR_RDMA_WRITE
	OpWriteImm   = C.IBV_WR_RDMA_WRITE_WITH_IMM
	OpRead       = C.IBV_WR_RDMA_READ
	OpJoined     = C.WEFT_OP_JOINED // goes with a later one, which has its bytes
	Signaled     = C.IBV_SEND_SIGNALED
	Inline       = C.IBV_SEND_INLINE
	Fence        = C.IBV_SEND_FENCE
	DoneRecv     = C.IBV_WC_RECV
	DoneRecvImm  = C.IBV_WC_RECV_RDMA_WITH_IMM
	StatusOK     = C.IBV_WC_SUCCESS
	StatusFlush  = C.IBV_WC_WR_FLUSH_ERR
	StatusRetry  = C.IBV_WC_RETRY_EXC_ERR
	StatusRNR    = C.IBV_WC_RNR_RETRY_EXC_ERR
	StatusAccess = C.IBV_WC_REM_ACCESS_ERR
	StatusReq    = C.IBV_WC_REM_INV_REQ_ERR
	StatusRemOp  = C.IBV_WC_REM_OP_ERR
	StatusProt   = C.IBV_WC_LOC_PROT_ERR
	StatusLength = C.IBV_WC_LOC_LEN_ERR
	GRHBytes     = 40 // in front of every datagram received
)

// The layouts agree, or this does not compile.
var (
	_ = [1]byte{}[unsafe.Sizeof(Op{})-C.sizeof_struct_weft_op]
	_ = [1]byte{}[unsafe.Sizeof(Done{})-C.sizeof_struct_weft_done]
	_ = [1]byte{}[unsafe.Sizeof(SGE{})-C.sizeof_struct_ibv_sge]
	_ = [1]byte{}[unsafe.Offsetof(Op{}.Pieces)-unsafe.Offsetof(C.struct_weft_op{}.nsge)]
	_ = [1]byte{}[unsafe.Offsetof(Op{}.RKey)-unsafe.Offsetof(C.struct_weft_op{}.rkey)]
	_ = [1]byte{}[unsafe.Offsetof(Op{}.With)-unsafe.Offsetof(C.struct_weft_op{}.with)]
	_ = [1]byte{}[unsafe.Offsetof(Op{}.SGE)-unsafe.Offsetof(C.struct_weft_op{}.sge)]
	_ = [1]byte{}[unsafe.Offsetof(Done{}.Bytes)-unsafe.Offsetof(C.struct_weft_done{}.byte_len)]
	_ = [1]byte{}[unsafe.Offsetof(Done{}.QP)-unsafe.Offsetof(C.struct_weft_done{}.qp_num)]
	_ = [1]byte{}[unsafe.Offsetof(Done{}.VendorErr)-unsafe.Offsetof(C.struct_weft_done{}.vendor_err)]
)

// Ops returns the n requests at addr, which is memory that stays until the
// last use.
func Ops(memory []byte, n int) []Op {
	return unsafe.Slice((*Op)(unsafe.Pointer(&memory[:n*int(unsafe.Sizeof(Op{}))][0])), n)
}

// OpBytes is the size of an Op.
const OpBytes = C.sizeof_struct_weft_op

var errPoll = errors.New("poll completion queue: broken")

// Poll takes completions, as many as there is room for in done.
func (q *CQ) Poll(done []Done) ([]Done, error) {
	n := C.weft_ibv_poll(&q.c, (*C.struct_weft_done)(unsafe.Pointer(&done[0])), C.int(len(done)))
	if n < 0 {
		return nil, errPoll
	}
	return done[:n], nil
}
