package trace

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// The programs run in the kernel when a traced function is entered and when it
// returns. Each function has its own two, made for it here, so that nothing has
// to be found about it.
//
// A thread's call is noted under the thread, with its stack pointer: a call that
// begins deeper in the stack, before the first has ended, is one that the library
// makes itself and is not shown. So fi_cq_sread is one call, though it
// reads the queue time and again. A call that never returned, because its thread
// was ended in it, is overwritten by one that begins no deeper.

// Results of a call, by which it is counted.
const (
	resultOK = iota
	resultAgain
	resultError
	results
)

var resultNames = [results]string{"ok", "again", "error"}

// Counters of what the programs could not do.
const (
	lostReused = iota // posts with the context of an operation under way
	lostFull          // posts while too many operations were under way
	lostRead          // completions beyond the first maxEntries of a read
	lostStart         // completions of operations that were posted before, or are not followed
	failed            // operations that completed with an error
	lostKinds
)

// maxEntries is how many completions of one read are taken in. The kernel's
// verifier walks through all of them.
const maxEntries = 128

const eagain = -11

// kernel holds the file descriptors of the maps.
type kernel struct {
	calls      int // thread → callState
	operations int // context → time and kind
	buckets    int // slot, bucket → count
	sums       int // slot → ns
	lost       int // lostKinds counters
	threads    int // thread, slot → time and name; -1: not kept
}

// Offsets below the frame pointer.
const (
	atThread  = -8
	atContext = -16 // the call's context, or its array of entries
	atSize    = -24 // of an entry
	atSlot    = -32
	atEntry   = -40 // a completion's context
	atKey     = -48 // of an array
	atValue   = -96 // callState: 40 bytes; an operation: 16; a thread's time: 32
	atPair    = -112
)

// Offsets in callState.
const (
	callTime, callSP, callPoint, callContext, callSize = 0, 8, 16, 24, 32
	callBytes                                          = 40
)

// assembler collects instructions.
type assembler struct {
	kernel
	ins    asm.Instructions
	labels int
	next   string // label of the next instruction
}

func (a *assembler) add(ins ...asm.Instruction) {
	for _, i := range ins {
		if a.next != "" {
			i = i.WithSymbol(a.next)
			a.next = ""
		}
		a.ins = append(a.ins, i)
	}
}

func (a *assembler) newLabel() string {
	a.labels++
	return fmt.Sprintf("l%d", a.labels)
}

// label names the next instruction. Of two names the first is of a jump to the
// second.
func (a *assembler) label(name string) {
	if a.next != "" {
		a.add(asm.Ja.Label(name))
	}
	a.next = name
}

// frame loads the address of an offset below the frame pointer.
func frame(to asm.Register, offset int32) []asm.Instruction {
	return []asm.Instruction{asm.Mov.Reg(to, asm.RFP), asm.Add.Imm(to, offset)}
}

// lookup leaves the address of a map's value in R0, 0 if there is none.
func (a *assembler) lookup(fd int, key int32) {
	a.add(asm.LoadMapPtr(asm.R1, fd))
	a.add(frame(asm.R2, key)...)
	a.add(asm.FnMapLookupElem.Call())
}

func (a *assembler) update(fd int, key, value int32, flags int32) {
	a.add(asm.LoadMapPtr(asm.R1, fd))
	a.add(frame(asm.R2, key)...)
	a.add(frame(asm.R3, value)...)
	a.add(asm.Mov.Imm(asm.R4, flags), asm.FnMapUpdateElem.Call())
}

func (a *assembler) remove(fd int, key int32) {
	a.add(asm.LoadMapPtr(asm.R1, fd))
	a.add(frame(asm.R2, key)...)
	a.add(asm.FnMapDeleteElem.Call())
}

// count adds one to a counter of what was lost.
func (a *assembler) count(counter int64) {
	skip := a.newLabel()
	a.add(asm.StoreImm(asm.RFP, atKey, counter, asm.Word))
	a.lookup(a.lost, atKey)
	a.add(asm.JEq.Imm(asm.R0, 0, skip), asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord))
	a.label(skip)
}

// userWord reads 8 bytes of the process at R3 into the frame; R0 is 0 if it
// could.
func (a *assembler) userWord(to int32) {
	a.add(frame(asm.R1, to)...)
	a.add(asm.Mov.Imm(asm.R2, 8), asm.FnProbeReadUser.Call())
}

// argument leaves an argument of the function in a register; the registers are
// at R6.
func (a *assembler) argument(to asm.Register, n int) {
	if n <= len(argRegs) {
		a.add(asm.LoadMem(to, asm.R6, argRegs[n-1], asm.DWord))
		return
	}
	a.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, atContext, asm.R1, asm.DWord),
		asm.LoadMem(asm.R3, asm.R6, regSP, asm.DWord),
		asm.Add.Imm(asm.R3, int32(firstOnStack+8*(n-len(argRegs)-1))))
	a.userWord(atContext)
	a.add(asm.LoadMem(to, asm.RFP, atContext, asm.DWord))
}

func (a *assembler) thread() {
	a.add(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.RFP, atThread, asm.R0, asm.DWord))
}

// exit ends the program, at label done.
func (a *assembler) exit() {
	a.label("done")
	a.add(asm.Mov.Imm(asm.R0, 0), asm.Return())
}

// entry is the program for a function's beginning. kind numbers what it posts.
func entry(k kernel, lib *library, index int, p *point, kind int) asm.Instructions {
	a := &assembler{kernel: k}
	a.add(asm.Mov.Reg(asm.R6, asm.R1))
	a.thread()
	a.add(asm.Mov.Imm(asm.R7, 0), asm.Mov.Imm(asm.R8, 0))
	switch {
	case p.role == post && p.contextArg != 0:
		a.argument(asm.R7, int(p.contextArg))
	case p.role == post:
		a.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, atContext, asm.R1, asm.DWord))
		a.argument(asm.R3, 2)
		a.add(asm.Add.Imm(asm.R3, int32(p.contextOffset)))
		a.userWord(atContext)
		a.add(asm.LoadMem(asm.R7, asm.RFP, atContext, asm.DWord))
	case p.role == read:
		a.entrySize(lib)
		a.argument(asm.R7, 2)
	case p.role == readErr:
		a.argument(asm.R7, 2)
	}
	a.add(asm.LoadMem(asm.R9, asm.R6, regSP, asm.DWord))
	a.leaveInner(index)
	if p.role == post {
		a.startOperation(kind)
	}
	a.add(asm.StoreMem(asm.RFP, atValue+callSP, asm.R9, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(index)), asm.StoreMem(asm.RFP, atValue+callPoint, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, atValue+callContext, asm.R7, asm.DWord),
		asm.StoreMem(asm.RFP, atValue+callSize, asm.R8, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, atValue+callTime, asm.R0, asm.DWord))
	a.update(a.calls, atThread, atValue, 0)
	a.exit()
	return a.ins
}

// entrySize leaves the size of the queue's entries in R8: of fi_cq_entry and so
// on, by enum fi_cq_format.
func (a *assembler) entrySize(lib *library) {
	have := a.newLabel()
	a.argument(asm.R3, 1)
	a.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, atContext, asm.R1, asm.DWord),
		asm.Add.Imm(asm.R3, int32(lib.cqHot)))
	a.userWord(atContext)
	a.add(asm.LoadMem(asm.R3, asm.RFP, atContext, asm.DWord), asm.Add.Imm(asm.R3, int32(lib.hotFormat)))
	a.userWord(atContext)
	a.add(asm.LoadMem(asm.R1, asm.RFP, atContext, asm.Word))
	for i, size := range []int32{8, 24, 40} {
		a.add(asm.Mov.Imm(asm.R8, size), asm.JEq.Imm(asm.R1, int32(i)+1, have))
	}
	a.add(asm.Mov.Imm(asm.R8, 48))
	a.label(have)
}

// leaveInner ends the program if the call is made within another one. R9 is the
// stack pointer.
func (a *assembler) leaveInner(index int) {
	outer := a.newLabel()
	a.lookup(a.calls, atThread)
	a.add(asm.JEq.Imm(asm.R0, 0, outer),
		asm.LoadMem(asm.R1, asm.R0, callSP, asm.DWord),
		asm.JLT.Reg(asm.R1, asm.R9, outer),
		asm.JGT.Reg(asm.R1, asm.R9, "done"),
		// as deep as the other: it has jumped here, or never returned
		asm.LoadMem(asm.R1, asm.R0, callPoint, asm.DWord),
		asm.JNE.Imm(asm.R1, int32(index), "done"))
	a.label(outer)
}

// startOperation notes when the operation with the context in R7 was posted. A
// context that is in use names two operations; then neither is measured.
func (a *assembler) startOperation(kind int) {
	fresh, stored := a.newLabel(), a.newLabel()
	a.add(asm.StoreMem(asm.RFP, atContext, asm.R7, asm.DWord))
	a.lookup(a.operations, atContext)
	a.add(asm.JEq.Imm(asm.R0, 0, fresh), asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord))
	a.count(lostReused)
	a.add(asm.Ja.Label(stored))
	a.label(fresh)
	a.add(asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, atValue, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(kind)), asm.StoreMem(asm.RFP, atValue+8, asm.R1, asm.DWord))
	a.update(a.operations, atContext, atValue, 1) // BPF_NOEXIST
	a.add(asm.JEq.Imm(asm.R0, 0, stored))
	a.count(lostFull)
	a.label(stored)
}

// leave is the program for a function's return. firstKind is the slot of the
// first kind of operations.
func leave(k kernel, index int, p *point, firstKind int) asm.Instructions {
	a := &assembler{kernel: k}
	a.add(asm.Mov.Reg(asm.R6, asm.R1), asm.FnKtimeGetNs.Call(), asm.Mov.Reg(asm.R9, asm.R0))
	a.thread()
	a.lookup(a.calls, atThread)
	a.add(asm.JEq.Imm(asm.R0, 0, "done"),
		asm.LoadMem(asm.R1, asm.R0, callPoint, asm.DWord),
		asm.JNE.Imm(asm.R1, int32(index), "done"))
	a.add(asm.LoadMem(asm.R1, asm.R0, callContext, asm.DWord), asm.StoreMem(asm.RFP, atContext, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, callSize, asm.DWord), asm.StoreMem(asm.RFP, atSize, asm.R1, asm.DWord),
		asm.LoadMem(asm.R7, asm.R0, callTime, asm.DWord))
	a.remove(a.calls, atThread)
	a.add(asm.LoadMem(asm.R8, asm.R6, regReturn, asm.DWord), asm.LSh.Imm(asm.R8, 32), asm.ArSh.Imm(asm.R8, 32),
		asm.Mov.Reg(asm.R6, asm.R9), asm.Sub.Reg(asm.R6, asm.R7))
	a.slotOfResult(index, p.noStatus)
	a.observe()
	if a.threads >= 0 {
		a.observeThread()
	}
	switch p.role {
	case post:
		a.add(asm.JEq.Imm(asm.R8, 0, "done"))
		a.remove(a.operations, atContext)
	case readErr:
		a.add(asm.JSLT.Imm(asm.R8, 1, "done"), asm.LoadMem(asm.R3, asm.RFP, atContext, asm.DWord))
		a.userWord(atEntry)
		a.add(asm.JNE.Imm(asm.R0, 0, "done"))
		a.remove(a.operations, atEntry)
		a.count(failed)
	case read:
		a.endOperations(firstKind)
	}
	a.exit()
	return a.ins
}

// slotOfResult stores the slot of the call by what it returned, which is in R8.
func (a *assembler) slotOfResult(index int, noStatus bool) {
	have := a.newLabel()
	a.add(asm.Mov.Imm(asm.R1, int32(index*results+resultOK)))
	if !noStatus {
		a.add(asm.JSGT.Imm(asm.R8, -1, have),
			asm.Mov.Imm(asm.R1, int32(index*results+resultAgain)),
			asm.JEq.Imm(asm.R8, eagain, have),
			asm.Mov.Imm(asm.R1, int32(index*results+resultError)))
	}
	a.label(have)
	a.add(asm.StoreMem(asm.RFP, atSlot, asm.R1, asm.DWord))
}

// observe adds the time in R6 to the histogram of the slot; see bucketOf. The
// logarithm is computed without branches: the kernel's verifier would walk
// through every way.
func (a *assembler) observe() {
	low, high, skip := a.newLabel(), a.newLabel(), a.newLabel()
	a.add(asm.Mov.Reg(asm.R3, asm.R6), asm.JGT.Imm(asm.R3, lowestTime-1, low), asm.Mov.Imm(asm.R3, lowestTime))
	a.label(low)
	a.add(asm.LoadImm(asm.R4, highestTime, asm.DWord), asm.JLE.Reg(asm.R3, asm.R4, high), asm.Mov.Reg(asm.R3, asm.R4))
	a.label(high)
	a.add(asm.Mov.Reg(asm.R1, asm.R3), asm.Mov.Imm(asm.R2, 0))
	for shift := 32; shift > 0; shift /= 2 {
		// 1 if R1 has more bits
		a.add(asm.LoadImm(asm.R4, 1<<shift-1, asm.DWord), asm.Sub.Reg(asm.R4, asm.R1), asm.RSh.Imm(asm.R4, 63),
			asm.Mul.Imm(asm.R4, int32(shift)), asm.RSh.Reg(asm.R1, asm.R4), asm.Add.Reg(asm.R2, asm.R4))
	}
	a.add(asm.Mov.Reg(asm.R4, asm.R2), asm.Sub.Imm(asm.R4, subBits), asm.RSh.Reg(asm.R3, asm.R4),
		asm.And.Imm(asm.R3, 1<<subBits-1), asm.LSh.Imm(asm.R2, subBits), asm.Add.Reg(asm.R3, asm.R2))
	a.add(asm.LoadMem(asm.R1, asm.RFP, atSlot, asm.DWord), asm.Mul.Imm(asm.R1, histogram), asm.Add.Reg(asm.R3, asm.R1),
		asm.StoreMem(asm.RFP, atKey, asm.R3, asm.Word))
	a.lookup(a.buckets, atKey)
	a.add(asm.JEq.Imm(asm.R0, 0, skip), asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, atSlot, asm.DWord), asm.StoreMem(asm.RFP, atKey, asm.R1, asm.Word))
	a.lookup(a.sums, atKey)
	a.add(asm.JEq.Imm(asm.R0, 0, skip), asm.StoreXAdd(asm.R0, asm.R6, asm.DWord))
	a.label(skip)
}

// observeThread adds the time in R6 to that of the thread and the slot.
func (a *assembler) observeThread() {
	fresh, have := a.newLabel(), a.newLabel()
	a.add(asm.LoadMem(asm.R1, asm.RFP, atThread, asm.DWord), asm.StoreMem(asm.RFP, atPair, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, atSlot, asm.DWord), asm.StoreMem(asm.RFP, atPair+8, asm.R1, asm.DWord))
	a.lookup(a.threads, atPair)
	a.add(asm.JEq.Imm(asm.R0, 0, fresh), asm.StoreXAdd(asm.R0, asm.R6, asm.DWord), asm.Ja.Label(have))
	a.label(fresh)
	a.add(asm.StoreMem(asm.RFP, atValue, asm.R6, asm.DWord))
	a.add(frame(asm.R1, atValue+8)...)
	a.add(asm.Mov.Imm(asm.R2, commBytes), asm.FnGetCurrentComm.Call())
	a.update(a.threads, atPair, atValue, 0)
	a.label(have)
}

// endOperations measures the operations of which the completions were read: R8 of them,
// at R9 ns.
func (a *assembler) endOperations(firstKind int) {
	loop, next, unknown, gone, few := a.newLabel(), a.newLabel(), a.newLabel(), a.newLabel(), a.newLabel()
	a.add(asm.JSLT.Imm(asm.R8, 1, "done"), asm.JLE.Imm(asm.R8, maxEntries, few))
	a.count(lostRead)
	a.add(asm.Mov.Imm(asm.R8, maxEntries))
	a.label(few)
	a.add(asm.LoadMem(asm.R7, asm.RFP, atContext, asm.DWord))

	a.label(loop)
	a.add(asm.Mov.Reg(asm.R3, asm.R7))
	a.userWord(atEntry)
	a.add(asm.JNE.Imm(asm.R0, 0, "done"))
	a.lookup(a.operations, atEntry)
	a.add(asm.JEq.Imm(asm.R0, 0, unknown),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord), asm.JEq.Imm(asm.R1, 0, gone),
		asm.Mov.Reg(asm.R6, asm.R9), asm.Sub.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord), asm.Add.Imm(asm.R1, int32(firstKind)),
		asm.StoreMem(asm.RFP, atSlot, asm.R1, asm.DWord))
	a.observe()
	a.label(gone)
	a.remove(a.operations, atEntry)
	a.add(asm.Ja.Label(next))
	a.label(unknown)
	a.count(lostStart)
	a.label(next)
	a.add(asm.LoadMem(asm.R1, asm.RFP, atSize, asm.DWord), asm.Add.Reg(asm.R7, asm.R1),
		asm.Sub.Imm(asm.R8, 1), asm.JNE.Imm(asm.R8, 0, loop))
}
