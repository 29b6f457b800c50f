// Package impair makes a network worse: an eBPF program of ours loses, doubles,
// delays, damages and marks packets that come to an interface. Kernels without
// netem run it, too. It needs CAP_NET_ADMIN and CAP_BPF; [Attach] works in the network
// namespace of the calling thread.
package impair

import (
	"fmt"
	"io"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Impairment says what happens to UDP datagrams that come in: the share of them
// to which each happens, from 0 to 1.
type Impairment struct {
	Loss   float64 // goes nowhere
	Double float64 // comes twice
	Delay  float64 // takes a detour, which is slow, and so is overtaken
	Damage float64 // has a bit of its payload turned over
	Mark   float64 // gets ECN's congestion experienced
	Detour int     // 10^3 bits per second of the detour, for its maker
	TCP    bool    // TCP's segments, too
}

// Offsets in the kernel's struct __sk_buff.
const (
	skbMark     = 8
	skbProtocol = 16
)

// twin marks the second copy of a datagram, so that it goes through.
const twin = 0x77656674

// Attach has what comes to an interface impaired until the result is closed.
// index is the interface's; detour that of an interface whose way leads back to
// it, 0 for none, and p.Delay counts only with one. Errors are the kernel's:
// unix.EPERM and ebpf.ErrNotSupported where it does not allow such a program.
func Attach(p Impairment, index, detour int) (io.Closer, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "impair", Type: ebpf.SchedCLS, License: "BSD", Instructions: program(&p, index, detour),
	})
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: prog, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		_ = prog.Close()
		return nil, fmt.Errorf("attach: %w", err)
	}
	return &attached{prog, l}, nil
}

// attached is a program on an interface.
type attached struct {
	prog *ebpf.Program
	link link.Link
}

// Close takes the program off.
func (a *attached) Close() error {
	err := a.link.Close()
	_ = a.prog.Close()
	return err
}

// chance jumps to label with probability 1-p.
func chance(p float64, label string) asm.Instructions {
	return asm.Instructions{
		asm.FnGetPrandomU32.Call(),
		asm.LoadImm(asm.R1, int64(min(p, 1)*math.MaxUint32), asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, label),
	}
}

// loadByte reads the packet's byte at offset into the stack at -8.
func loadByte(offset int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, offset),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8), asm.Mov.Imm(asm.R4, 1),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "pass"),
	}
}

// storeByte writes it back.
func storeByte(offset int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, offset),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8), asm.Mov.Imm(asm.R4, 1), asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
	}
}

const (
	ethernet     = 14
	ipv4Protocol = ethernet + 9
	ipv6Next     = ethernet + 6
	udp          = 17
	tcp          = 6
	// damagedAt is a byte of the payload that every datagram of weft's has, with
	// either IP.
	damagedAt = ethernet + 40 + 8 + 2
)

// program is the eBPF program. R6 is the packet, R7 1 for IPv6.
func program(p *Impairment, index, detour int) asm.Instructions {
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, skbMark, asm.Word),
		asm.JEq.Imm(asm.R1, twin, "pass"),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.Mov.Imm(asm.R7, 0),
		asm.Mov.Imm(asm.R8, ipv4Protocol),
		asm.JEq.Imm(asm.R1, 0x0008, "ip"), // ETH_P_IP in network order
		asm.Mov.Imm(asm.R7, 1),
		asm.JNE.Imm(asm.R1, 0xdd86, "pass"), // ETH_P_IPV6
		asm.Mov.Imm(asm.R8, ipv6Next),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("ip"), asm.Mov.Reg(asm.R2, asm.R8),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8), asm.Mov.Imm(asm.R4, 1),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
	}
	if p.TCP {
		ins = append(ins, asm.JEq.Imm(asm.R1, tcp, "ours"))
	}
	ins = append(ins, asm.JNE.Imm(asm.R1, udp, "pass"), label("ours"))
	ins = append(ins, chance(p.Loss, "kept")...)
	ins = append(ins, asm.Mov.Imm(asm.R0, 2), asm.Return()) // TC_ACT_SHOT
	ins = append(ins, label("kept"))
	ins = append(ins, chance(p.Double, "single")...)
	ins = append(ins,
		asm.Mov.Imm(asm.R1, twin), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, int32(index)), asm.Mov.Imm(asm.R3, 1), // BPF_F_INGRESS
		asm.FnCloneRedirect.Call(),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
		label("single"))
	ins = append(ins, chance(p.Damage, "whole")...)
	ins = append(ins, loadByte(damagedAt)...)
	ins = append(ins, asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte), asm.Xor.Imm(asm.R1, 4),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.Byte))
	ins = append(ins, storeByte(damagedAt)...)
	ins = append(ins, label("whole"))
	ins = append(ins, chance(p.Mark, "plain")...)
	ins = append(ins, mark()...)
	ins = append(ins, label("plain"))
	if detour != 0 {
		ins = append(ins, chance(p.Delay, "pass")...)
		ins = append(ins, asm.Mov.Imm(asm.R1, int32(detour)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(),
			asm.Return())
	}
	return append(ins, asm.Mov.Imm(asm.R0, 0).WithSymbol("pass"), asm.Return()) // TC_ACT_OK
}

// label is a place to jump to.
func label(name string) asm.Instruction { return asm.Mov.Imm(asm.R0, 0).WithSymbol(name) }

// mark sets both ECN bits: in IPv6 they lie across the second byte, in IPv4
// they are the second byte's low ones, and the header's checksum changes.
func mark() asm.Instructions {
	ins := asm.Instructions{asm.JEq.Imm(asm.R7, 0, "mark4")}
	ins = append(ins, loadByte(ethernet+1)...)
	ins = append(ins, asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte), asm.Or.Imm(asm.R1, 0x30),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.Byte))
	ins = append(ins, storeByte(ethernet+1)...)
	ins = append(ins, asm.Ja.Label("plain"), label("mark4"))
	ins = append(ins, loadByte(ethernet+1)...)
	ins = append(ins,
		asm.LoadMem(asm.R8, asm.RFP, -8, asm.Byte),
		asm.Mov.Reg(asm.R9, asm.R8), asm.Or.Imm(asm.R9, 3),
		asm.StoreMem(asm.RFP, -8, asm.R9, asm.Byte))
	ins = append(ins, storeByte(ethernet+1)...)
	return append(ins,
		asm.LSh.Imm(asm.R8, 8), asm.LSh.Imm(asm.R9, 8), // as the low half of a 16-bit word in memory order
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, ethernet+10),
		asm.Mov.Reg(asm.R3, asm.R8), asm.Mov.Reg(asm.R4, asm.R9), asm.Mov.Imm(asm.R5, 2),
		asm.FnL3CsumReplace.Call())
}
