package trace

// Where the kernel keeps a traced thread's registers (struct pt_regs), and the
// calling convention of C: System V AMD64 ABI, section 3.2.3.
const (
	regSP     = 152
	regReturn = 80 // rax
	// the return address is above the stack pointer when a function begins
	firstOnStack = 8
)

var argRegs = []int16{112, 104, 96, 88, 72, 64} // rdi, rsi, rdx, rcx, r8, r9
