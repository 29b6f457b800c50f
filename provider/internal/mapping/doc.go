// Package mapping reaches memory of other processes of this host by mappings, where memory of a device is at either
// end of a copy, and lets other processes reach this one's.
//
//	host      what is needed of this process, its regions, and regions of peers
//	domain    what a domain has mapped, and what it lets others map
//	regions   the side that maps: peers' regions as one post of a list reaches them
//	owner     the other side: where regions are, and copies that another process asks for
//
//	mapping side                         owner
//	   where is the region?  →              its gate is entered, its memory is the one that was registered
//	                         ←  allocation
//	   the allocation is mapped, or a mapping used that is kept (package hmem)
//	   copies
//
// Where the region is host memory and the local end a device's, it is the other way round: the owner maps this side's
// allocation and copies.
//
// # Threads
//
// [Regions] belong to one thread. All else may be called from any. The owner answers from its process's descriptor
// thread and from goroutines, without progress of the endpoint that has the region.
//
// # Peers
//
// What another process asks for is checked: the region is named by its key and its endpoint's incarnation, and what is
// asked for lies in it and within its rights. Memory that was freed while its region is open is found by its buffer
// number, and refused.
//
// # Limits
//
// The package knows no endpoint: regions of this process are behind [Process], those of peers are [Remote].
package mapping
