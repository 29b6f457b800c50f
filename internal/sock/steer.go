package sock

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// steerer holds what the kernel must keep to steer a group.
type steerer struct {
	sockets *ebpf.Map
	program *ebpf.Program
}

// StripeByte is the byte of a datagram's payload that names the socket of its group, from 0.
const StripeByte = 1

// udpHeader is the size of the header before the payload, where the program's
// data starts.
const udpHeader = 8

// steerProgram selects the socket by the stripe in a datagram's second byte,
// modulo their number. A datagram without such a byte goes where the kernel's
// hash says, to be thrown away there.
func steerProgram(mapFD, sockets int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R2, 0),
		asm.StoreMem(asm.RFP, -8, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R2, udpHeader+StripeByte),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, 1),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
		asm.Mod.Imm(asm.R1, int32(sockets)),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.LoadMapPtr(asm.R2, mapFD),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnSkSelectReuseport.Call(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"), // SK_PASS
		asm.Return(),
	}
}

// attach has the kernel steer by eBPF. Errors are of the kernel: EPERM where
// that is not allowed.
func (s *steerer) attach(sockets []*Socket) error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "weft_stripes", Type: ebpf.ReusePortSockArray, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(sockets)),
	})
	if err != nil {
		return fmt.Errorf("socket array: %w", err)
	}
	for i, socket := range sockets {
		if err := m.Put(uint32(i), uint64(socket.FD)); err != nil {
			return errors.Join(fmt.Errorf("socket array entry %d: %w", i, err), m.Close())
		}
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weft_steer", Type: ebpf.SkReuseport, AttachType: ebpf.AttachSkReuseportSelect,
		Instructions: steerProgram(m.FD(), len(sockets)), License: "BSD",
	})
	if err != nil {
		return errors.Join(fmt.Errorf("steering program: %w", err), m.Close())
	}
	if err := unix.SetsockoptInt(sockets[0].FD, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_EBPF, p.FD()); err != nil {
		return errors.Join(fmt.Errorf("attach steering program: %w", err), p.Close(), m.Close())
	}
	s.sockets, s.program = m, p
	return nil
}

// close lets the kernel forget. The sockets hold the program as long as they live.
func (s *steerer) close() {
	if s.program != nil {
		_ = s.program.Close()
		_ = s.sockets.Close()
	}
	*s = steerer{}
}

// attachClassic has the kernel steer by a program that every process may
// attach: the sockets' order in the group is that in which they were bound.
func attachClassic(fd, sockets int) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: StripeByte},
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(sockets)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &f); err != nil {
		return fmt.Errorf("attach classic steering program: %w", err)
	}
	return nil
}
