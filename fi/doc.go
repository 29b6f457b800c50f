// Package fi is libfabric's vocabulary in Go: capability and operation flags,
// enumerations, error numbers, and the attribute structures that fi_getinfo
// negotiates. It contains no C and opens nothing.
//
// # Values
//
// Every constant has the value of its C counterpart in libfabric 1.17; a test
// compiles a C program against the installed headers and compares. Names are
// the C names without the FI_ prefix, in Go's case: FI_DIRECTED_RECV is
// [DirectedRecv], FI_EP_RDM is [EPRDM], FI_ORDER_SAS is [OrderSAS]. Error
// numbers keep their upper-case names: FI_ETRUNC is [ETRUNC]. The constants in
// later.go came after 1.17.
//
// A flag bit can have several meanings: the field or the call that carries it
// decides. FI_CONTEXT as a mode, FI_DIRECTED_RECV as a capability, FI_CLAIM on
// a receive and FI_SELECTIVE_COMPLETION on a bind are all bit 59.
//
// # Sizes
//
// What C declares as size_t is uint64 here: libfabric uses SIZE_MAX as a value
// ([SharedContext]), and weft runs on 64-bit machines only.
package fi
