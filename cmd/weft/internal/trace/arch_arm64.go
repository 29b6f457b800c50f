package trace

// Where the kernel keeps a traced thread's registers (struct user_pt_regs), and
// the calling convention of C: AAPCS64, section 6.8.2.
const (
	regSP        = 248
	regReturn    = 0 // x0
	firstOnStack = 0
)

var argRegs = []int16{0, 8, 16, 24, 32, 40, 48, 56}
