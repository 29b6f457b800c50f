package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/sock"
)

// The XDP program that takes an interface's datagrams out of the driver's receive path, compiled here from the
// interface's addresses. Registers: R6 the context, R2 and R3 begin and end of the packet, R7 the stripe, then the
// place in the map of sockets; R4, R5 and R8 are scratch. All jumps that give a frame to the kernel lead to the label
// pass.

// filter is what the program compares: a frame is ours if it is a datagram to this address that fits a slot.
type filter struct {
	mac     [6]byte
	local   *local
	frame   int // largest in bytes
	stripes int
	queues  int // receive queues of the interface
}

// Fields of the kernel's struct xdp_md.
const (
	ctxData  = 0
	ctxEnd   = 4
	ctxMeta  = 8
	ctxQueue = 16
)

// stampSize is what the program writes in front of a frame: when it came, by
// CLOCK_MONOTONIC.
const stampSize = 8

// xdpPass is the verdict that leaves a frame to the kernel.
const xdpPass = 2

// match compiles: goto pass unless the bytes of the packet at an offset from R2 are want.
func match(at int, want []byte) (list asm.Instructions) {
	for len(want) > 0 {
		n, size, value := 1, asm.Byte, int32(want[0])
		switch {
		case len(want) >= 4:
			n, size, value = 4, asm.Word, int32(binary.NativeEndian.Uint32(want))
		case len(want) >= 2:
			n, size, value = 2, asm.Half, int32(binary.NativeEndian.Uint16(want))
		}
		list = append(list, asm.LoadMem(asm.R4, asm.R2, int16(at), size), asm.JNE.Imm32(asm.R4, value, "pass"))
		at, want = at+n, want[n:]
	}
	return list
}

// ours compiles: goto pass unless the packet from R2 to R3 is ours. It leaves the stripe's byte in R7.
func (f *filter) ours() asm.Instructions {
	udp := sizeEthernet + sizeIPv6
	if len(f.local.ip) == 4 {
		udp = sizeEthernet + sizeIPv4
	}
	stripe := udp + sizeUDP + sock.StripeByte
	list := asm.Instructions{
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, int32(stripe+1)),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"), // too short
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, int32(f.frame)),
		asm.JGT.Reg(asm.R3, asm.R4, "pass"), // too long
	}
	port := binary.BigEndian.AppendUint16(nil, f.local.port)
	list = append(list, match(0, f.mac[:])...)
	if len(f.local.ip) == 4 {
		list = append(list, match(12, []byte{etherIPv4 >> 8, etherIPv4 & 0xff, 0x45})...)
		list = append(list,
			asm.LoadMem(asm.R4, asm.R2, sizeEthernet+6, asm.Half),
			asm.And.Imm(asm.R4, int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, fragments)))),
			asm.JNE.Imm(asm.R4, 0, "pass"))
		list = append(list, match(sizeEthernet+9, []byte{protoUDP})...)
		list = append(list, match(sizeEthernet+16, f.local.ip)...)
	} else {
		list = append(list, match(12, []byte{etherIPv6 >> 8, etherIPv6 & 0xff})...)
		list = append(list, match(sizeEthernet+6, []byte{protoUDP})...)
		list = append(list, match(sizeEthernet+24, f.local.ip)...)
	}
	list = append(list, match(udp+2, port)...)
	list = append(list, f.unsummed(udp)...)
	return append(list, asm.LoadMem(asm.R7, asm.R2, int16(stripe), asm.Byte))
}

// unsummed compiles: goto pass if the UDP checksum of the packet at R2 is that of the
// pseudo header alone. So it is of a packet that never left this machine, or that the
// kernel has joined of several.
func (f *filter) unsummed(udp int) asm.Instructions {
	addresses := 2 * len(f.local.ip)
	list := asm.Instructions{
		asm.Mov.Imm(asm.R5, int32(binary.NativeEndian.Uint16([]byte{0, protoUDP}))),
		asm.LoadMem(asm.R4, asm.R2, int16(udp+4), asm.Half),
		asm.Add.Reg(asm.R5, asm.R4),
	}
	for at := udp - addresses; at < udp; at += 2 {
		list = append(list, asm.LoadMem(asm.R4, asm.R2, int16(at), asm.Half), asm.Add.Reg(asm.R5, asm.R4))
	}
	for range 2 { // fold
		list = append(list,
			asm.Mov.Reg(asm.R4, asm.R5),
			asm.RSh.Imm(asm.R4, 16),
			asm.And.Imm(asm.R5, 0xffff),
			asm.Add.Reg(asm.R5, asm.R4))
	}
	return append(list,
		asm.LoadMem(asm.R4, asm.R2, int16(udp+6), asm.Half),
		asm.JEq.Reg(asm.R4, asm.R5, "pass"))
}

// program compiles the filter: a frame of ours goes to socket stripe * queues +
// queue of the map, with the time in front of it; the others, and ours if there is no such
// socket, go on to the kernel.
func (f *filter) program(mapFD int) asm.Instructions {
	list := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, ctxData, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, ctxEnd, asm.Word),
	}
	list = append(list, f.ours()...)
	return append(list,
		asm.LoadMem(asm.R8, asm.R6, ctxQueue, asm.Word),
		asm.JGE.Imm(asm.R8, int32(f.queues), "pass"),
		asm.Mod.Imm(asm.R7, int32(f.stripes)),
		asm.Mul.Imm(asm.R7, int32(f.queues)),
		asm.Add.Reg(asm.R7, asm.R8),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, -stampSize),
		asm.FnXdpAdjustMeta.Call(),
		asm.JNE.Imm(asm.R0, 0, "give"), // the driver cannot
		asm.LoadMem(asm.R2, asm.R6, ctxMeta, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, ctxData, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, stampSize),
		asm.JGT.Reg(asm.R4, asm.R3, "give"),
		asm.StoreMem(asm.R2, 0, asm.R8, asm.DWord),
		asm.LoadMapPtr(asm.R1, mapFD).WithSymbol("give"),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Mov.Imm(asm.R3, xdpPass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return(),
	)
}

// steering is a program on an interface. The kernel takes it off when the process ends.
type steering struct {
	sockets *ebpf.Map
	program *ebpf.Program
	link    link.Link
	generic bool // in generic mode: behind the driver, with a copy
}

// attach puts the program on an interface, given by its index: in the driver, behind it, or with Best behind it where
// the driver cannot. Errors are of the kernel: EPERM without CAP_BPF and CAP_NET_ADMIN, EBUSY if the interface has
// another program.
func (f *filter) attach(iface int, where Where) (*steering, error) {
	s := &steering{}
	var err error
	s.sockets, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "weft_xsk", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(f.stripes * f.queues),
	})
	if err != nil {
		return nil, fmt.Errorf("socket map: %w", err)
	}
	s.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weft_xdp", Type: ebpf.XDP, Instructions: f.program(s.sockets.FD()), License: "BSD",
	})
	if err != nil {
		s.close()
		return nil, fmt.Errorf("XDP program: %w", err)
	}
	s.generic = where == BehindDriver
	if s.link, err = s.on(iface); err != nil && where == Best && !errors.Is(err, unix.EBUSY) &&
		!errors.Is(err, unix.EPERM) {
		s.generic = true
		var second error
		if s.link, second = s.on(iface); second != nil {
			err = fmt.Errorf("in the driver: %w; behind it: %w", err, second)
		} else {
			err = nil
		}
	}
	if err != nil {
		s.link = nil
		s.close()
		return nil, fmt.Errorf("attach the XDP program: %w", err)
	}
	return s, nil
}

// on links the program to an interface.
func (s *steering) on(iface int) (link.Link, error) {
	o := link.XDPOptions{Program: s.program, Interface: iface, Flags: link.XDPDriverMode}
	if s.generic {
		o.Flags = link.XDPGenericMode
	}
	return link.AttachXDP(o)
}

func (s *steering) close() {
	if s.link != nil {
		_ = s.link.Close()
	}
	if s.program != nil {
		_ = s.program.Close()
	}
	_ = s.sockets.Close()
}
