// Package hmem is memory that the processor does not simply read and write (FI_HMEM): of GPUs, and behind dma-bufs.
//
// Such memory is known by its address alone: bit 63 is set in all addresses of such memory that requests, posted
// receives and regions have ([OnDevice]). So nothing that carries an address needs a second word, what does not know of
// devices faults instead of reading something else, and the copies of plain memory pay one test of a sign. Package cuda
// gives out those of GPUs. A dma-buf is mapped when it is registered ([Register]), and is known by the mapping's
// address, with bits 57 to 63 set: the accesses to it have to be reported to the kernel. [Store], [Load], [Copy] and
// [Apply] take addresses of any kind.
//
// Memory of a device is read and written by processes of the same host that map it ([Importer], [Mapping]). Which
// processes may do so has a token of the allocation ([Share], [ExportedAt]), by which it fetches a dma-buf's descriptor
// or an allocation's CUDA handle from the owner's descriptor thread, which answers processes of the same user only: so
// says the kernel, of both sides. The same thread answers what [Answer] has entered, which [Ask] asks another process.
//
// Mappings are kept. Before a region is closed those of its allocation are recalled from all processes that have
// fetched it, and a process that has none any more says so; it is not fetched by that token again. So memory that is
// freed after its regions are closed is mapped nowhere. Memory that was freed without that is found by the driver's
// number of it, and its token is good no longer.
//
// What the package keeps is the process's. Its functions may be called from any thread.
package hmem
