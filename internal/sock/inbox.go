package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// inbox is memory that the kernel puts datagrams into that are not long, shared with the
// process: an empty one costs a load where an empty socket costs a system call,
// and the socket's queue, with the memory of each datagram that one processor
// allocates and another frees, is left out. All that comes before the socket stays:
// routes, firewall, checksums. An eBPF program does it that stands where a socket's
// filter does. To the kernel what it takes is filtered: it counts as
// UdpInErrors and among the socket's drops.
//
// A datagram, or several of one size that the kernel hands over joined, takes as many slots
// in a row as it needs. What begins in the last ones goes on behind them, where
// no slot begins. What is said of it stands apart from the slots, where no
// datagram is: whatever one contains is not taken for the word of the program.
//
// The program leaves to the socket what is long or of a link-local address, of which it does
// not see the scope; what comes while the inbox is full or
// off; and what comes while the socket holds something, because datagrams that overtake
// each other count as lost.
//
//	program                                 owner
//	P1: claim slots: tail + span            O1: off = 1 (before a sleep)
//	P2: fill them, seq = position + 1       O2: poll the slots
//	P3: off? then the socket gets it too    O3: sleep until the socket has something
//
// P2 is a read-modify-write and O1 is sequentially consistent, so either P3 sees O1
// or O2 sees P2. What comes twice has the same packet number.
type inbox struct {
	mem     []byte
	program *ebpf.Program

	head     uint64 // slots that were read
	released uint64 // the head that the program reads; it may lag behind head
	taken    uint64 // datagrams that came by the socket
	miss     int    // polls of the socket that did not find one that must come
	due      time.Duration

	// unused: all goes to the socket for ever. Stored by its owner, read by switchOff.
	unused atomic.Bool
}

// Layout of the shared memory. Lines are written by one side each.
const (
	inboxPassed = 0   // program: datagrams left to the socket
	inboxTail   = 64  // program: slots claimed
	inboxHead   = 128 // owner: slots read
	inboxTaken  = 136 // owner: datagrams taken from the socket
	inboxOff    = 144 // owner: 1 while all shall go to the socket
	inboxDesc   = 256 // what is said of each slot that begins a datagram
	inboxFirst  = inboxDesc + inboxSlots*descBytes

	inboxSlots = 64
	slotShift  = 9
	slotBytes  = 1 << slotShift // the UDP header and what follows
	mostSlots  = 9              // of a datagram: 4 KiB and what they are wrapped in
	inboxMost  = mostSlots * slotBytes
	inboxBytes = inboxFirst + inboxSlots*slotBytes + inboxMost

	descShift = 6
	descBytes = 1 << descShift
	descSeq   = 0  // position + 1 once it is filled, modulo 2^32
	descLen   = 4  // bytes in the slots; 0: nothing
	descTime  = 8  // CLOCK_MONOTONIC
	descGSO   = 16 // payload bytes of each of several datagrams but the last; 0: there is one
	descSpan  = 20 // slots that it takes
	descIP    = 24 // the IP header without options
)

const (
	// headEvery is after how many slots read the head is published to the program.
	headEvery = 8
	// inboxPoll is how long the socket is not polled if nothing says that it
	// should be. Its error queue does not say. A poll costs a system call, or two, and what
	// they push out of the processor's caches.
	inboxPoll = time.Millisecond
	// inboxMisses is how many polls of the socket may find nothing where the program
	// let something pass: the kernel may have dropped it.
	inboxMisses = 64
)

// Fields of the kernel's struct __sk_buff, and what its helpers take.
const (
	skbLen      = 0
	skbProtocol = 16
	skbGSOSize  = 176
	fromNetwork = 1 // BPF_HDR_START_NET
	keepAll     = -1
)

// inboxProgram compiles the program.
func inboxProgram(mapFD int) asm.Instructions {
	ether := func(kind uint16) int32 {
		return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, kind)))
	}
	native := func(a, b byte) int32 { return int32(binary.NativeEndian.Uint16([]byte{a, b})) }
	list := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R7, mapFD, 0),
		asm.LoadMem(asm.R8, asm.R6, skbLen, asm.Word),
		asm.JGT.Imm(asm.R8, inboxMost, "pass"),
		asm.JLE.Imm(asm.R8, udpHeader, "pass"),
		asm.LoadMem(asm.R1, asm.R7, inboxOff, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R7, inboxPassed, asm.DWord),
		asm.LoadMem(asm.R2, asm.R7, inboxTaken, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, "pass"), // the socket holds something

		asm.Mov.Imm(asm.R2, 20), // the IP header's size
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, ether(unix.ETH_P_IP), "claim"),
		asm.JNE.Imm(asm.R1, ether(unix.ETH_P_IPV6), "pass"),
	}
	list = append(list, skbLoad(asm.FnSkbLoadBytesRelative, 8, asm.RFP, -16, asm.Mov.Imm(asm.R4, 2))...)
	return append(list, append(append(asm.Instructions{
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.RFP, -16, asm.Half),
		asm.And.Imm(asm.R1, native(0xff, 0xc0)),
		asm.JEq.Imm(asm.R1, native(0xfe, 0x80), "pass"), // link-local
		asm.Mov.Imm(asm.R2, 40),

		asm.StoreMem(asm.RFP, ipSize, asm.R2, asm.DWord).WithSymbol("claim"),
		asm.Mov.Reg(asm.R3, asm.R8),
		asm.Add.Imm(asm.R3, slotBytes-1),
		asm.RSh.Imm(asm.R3, slotShift),
		asm.StoreMem(asm.RFP, span, asm.R3, asm.DWord),
		asm.LoadMem(asm.R9, asm.R7, inboxTail, asm.DWord),
		asm.LoadMem(asm.R2, asm.R7, inboxHead, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Add.Reg(asm.R1, asm.R3),
		asm.Mov.Reg(asm.R4, asm.R1),
		asm.Sub.Reg(asm.R4, asm.R2),
		asm.JGT.Imm(asm.R4, inboxSlots, "pass"), // full
		asm.Mov.Reg(asm.R0, asm.R9),
		atomically(asm.CmpXchg, asm.R7, asm.DWord, inboxTail), // P1
		asm.JNE.Reg(asm.R0, asm.R9, "pass"),                   // another processor was faster
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, sequence, asm.R1, asm.DWord),
		asm.And.Imm(asm.R9, inboxSlots-1),
		asm.Mov.Reg(asm.R2, asm.R9),
		asm.LSh.Imm(asm.R2, descShift),
		asm.LoadMapValue(asm.R1, mapFD, inboxDesc),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.StoreMem(asm.RFP, descAt, asm.R2, asm.DWord),
		asm.LSh.Imm(asm.R9, slotShift),
		asm.LoadMapValue(asm.R1, mapFD, inboxFirst),
		asm.Add.Reg(asm.R9, asm.R1),
	},
		skbLoad(asm.FnSkbLoadBytes, 0, asm.R9, 0, asm.Mov.Reg(asm.R4, asm.R8))...),
		describe()...)...)
}

// What the program keeps on its stack.
const (
	sequence = -8
	ipSize   = -24
	span     = -32
	descAt   = -40
)

// describe compiles what follows once the datagram is in its slots.
func describe() asm.Instructions {
	list := asm.Instructions{
		asm.LoadMem(asm.R9, asm.RFP, descAt, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, span, asm.DWord),
		asm.StoreMem(asm.R9, descSpan, asm.R1, asm.Word),
		asm.JNE.Imm(asm.R0, 0, "broken"),
	}
	list = append(list, skbLoad(asm.FnSkbLoadBytesRelative, 0, asm.R9, descIP, asm.LoadMem(asm.R4, asm.RFP, ipSize,
		asm.DWord))...)
	return append(list,
		asm.JNE.Imm(asm.R0, 0, "broken"),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, descTime, asm.R0, asm.DWord),
		asm.StoreMem(asm.R9, descLen, asm.R8, asm.Word),
		asm.LoadMem(asm.R1, asm.R6, skbGSOSize, asm.Word),
		asm.StoreMem(asm.R9, descGSO, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, sequence, asm.DWord),
		atomically(asm.Xchg, asm.R9, asm.Word, descSeq), // P2
		asm.LoadMem(asm.R1, asm.R7, inboxOff, asm.Word), // P3
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),

		asm.Mov.Imm(asm.R1, 0).WithSymbol("broken"),
		asm.StoreMem(asm.R9, descLen, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, sequence, asm.DWord),
		atomically(asm.Xchg, asm.R9, asm.Word, descSeq),

		asm.Mov.Imm(asm.R1, 1).WithSymbol("pass"),
		atomically(asm.AddAtomic, asm.R7, asm.DWord, inboxPassed),
		asm.Mov.Imm(asm.R0, keepAll),
		asm.Return(),
	)
}

// skbLoad compiles that a helper copies bytes from an offset of the datagram, to to plus
// at, as many as size puts into R4. R0 is 0 if that was possible.
func skbLoad(helper asm.BuiltinFunc, from int32, to asm.Register, at int32, size asm.Instruction) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, from),
		asm.Mov.Reg(asm.R3, to),
		asm.Add.Imm(asm.R3, at),
		size,
		asm.Mov.Imm(asm.R5, fromNetwork),
		helper.Call(),
	}
}

// atomically compiles op on the memory at dst plus at, with the operand in R1. Version 0.22 of the assembler forgets
// to write which operation it is, where the instruction's constant does not say so.
func atomically(op asm.AtomicOp, dst asm.Register, size asm.Size, at int16) asm.Instruction {
	i := op.Mem(dst, asm.R1, size, at)
	i.Constant = int64(op >> 8)
	return i
}

// newInbox makes an inbox and loads its program. Errors are of the kernel: EPERM
// where that is not allowed.
func newInbox() (*inbox, error) {
	values, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "weft_inbox", Type: ebpf.Array, KeySize: 4, ValueSize: inboxBytes, MaxEntries: 1,
		Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return nil, fmt.Errorf("memory of the inbox: %w", err)
	}
	defer values.Close() // the mapping and the program hold it
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weft_inbox", Type: ebpf.SocketFilter, Instructions: inboxProgram(values.FD()), License: "BSD",
	})
	if err != nil {
		return nil, fmt.Errorf("program of the inbox: %w", err)
	}
	b := &inbox{program: program}
	if b.mem, err = unix.Mmap(values.FD(), 0, inboxBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(fmt.Errorf("map the inbox: %w", err), program.Close())
	}
	return b, nil
}

// attach has the datagrams of a socket go through the inbox.
func (b *inbox) attach(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, b.program.FD()); err != nil {
		return fmt.Errorf("attach the inbox: %w", err)
	}
	return nil
}

// close gives the memory back. The program goes with the sockets that have it.
func (b *inbox) close() error { return errors.Join(b.program.Close(), unix.Munmap(b.mem)) }

// OpenInboxes gives each socket an inbox, before it is first used; NoInbox says why not
// all have one.
func (g *Group) OpenInboxes() { g.NoInbox = g.openInboxes() }

func (g *Group) openInboxes() error {
	for _, s := range g.Sockets {
		b, err := newInbox()
		if err != nil {
			return err
		}
		if err := b.attach(s.FD); err != nil {
			return errors.Join(err, b.close())
		}
		s.inbox = b
	}
	return nil
}

// HasInbox reports whether the kernel puts short datagrams where they are found without a
// system call. Then [Message.Driver] is when it did.
func (s *Socket) HasInbox() bool { return s.inbox != nil }

// Bell has the socket become readable with everything that comes, or no longer. What
// came before must be polled for. Any thread may call it.
func (s *Socket) Bell(on bool) {
	if s.inbox != nil {
		s.inbox.switchOff(on)
	}
}

// receiveInbox polls the inbox, and the socket if there is a reason.
func (s *Socket) receiveInbox(in *In, now time.Duration) (n int, full bool, err error) {
	b := s.inbox
	if in.direct = b.take(in.messages[:]); in.direct > 0 {
		return in.direct, in.direct == inMessages || b.outstanding() != 0, nil
	}
	left := b.outstanding()
	if left == 0 && now < b.due {
		return 0, false, nil
	}
	passed := b.taken + left
	if n, full, err = s.receiveSockets(in, now); err == nil {
		b.polled(n, !full, passed)
		b.due = now + inboxPoll
	}
	return n, full, err
}
