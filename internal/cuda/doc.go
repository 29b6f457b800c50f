// Package cuda copies to and from the memory of NVIDIA GPUs, through the CUDA
// driver API of libcuda.so.1, which is loaded at run time: without it every
// program still starts, and [Load] says what is missing.
//
// # Addresses
//
// The caller keeps device memory apart from the process's own by the address
// alone. [Register] gives an address out in which bit 63 is set, which no
// address of a process on x86-64 or arm64 has: following it by accident faults
// at once instead of reading something else. Arithmetic within a region works
// on such addresses as on others.
//
//	63   62      57 56              0
//	+---+----------+----------------+
//	| 1 | context  | CUdeviceptr    |
//	+---+----------+----------------+
//
// The context is an index into the contexts in which regions were allocated, so
// that a copy by any thread finds the right one.
//
// Everything here may be called by any thread. Copies have ended when the call
// returns: regions get CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
package cuda
