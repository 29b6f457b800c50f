// Package direct lets C threads call Go functions like C functions, without the runtime.
//
// # Model
//
// A callback from C into Go through cgo takes 50 to 190 ns, because it enters the runtime. A function that needs
// nothing of the runtime can be called without entering it: [Trampoline] is the address of a function in the C ABI
// that saves what that ABI wants saved, puts its arguments where Go's internal ABI has them, points the register of
// the current goroutine at zeroed memory, and calls the function whose entry point it was given. The stack limit in
// that memory is 0, so that the check at the head of every Go function passes, whatever the thread's stack.
//
// # What such a function may do
//
// It works on memory off the Go heap, and reads and writes words of heap objects that something else keeps alive. It
// must not allocate, store Go pointers into memory (write barriers), use maps, channels, locks of package sync, defer,
// panics, interfaces' type assertions, closures that are called through a variable, assembly (the wrapper of an
// assembly function loads the goroutine from the thread's storage, where there is none), or time.Now. There is no
// goroutine behind it, and its stack does not grow. scripts/callcheck.sh (package callcheck) walks the calls of the
// built libraries from the functions of the table and fails where one of the runtime's is reached that is not on its
// list. The one call through a variable is [Call]: the data plane calls a backend's functions by it, which are walked
// as those of the table are.
//
// What needs the runtime such a function reports by a code, and the C code that called it makes an ordinary callback.
//
// # Where it cannot work
//
// The internal ABI may change with the Go version. A self-test at load calls a function ([Probe]) through the
// trampoline and checks arguments, result and the saved registers; where it fails, or with FI_WEFT_DIRECT=no, the same
// functions are called through ordinary callbacks.
package direct
