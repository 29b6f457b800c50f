// Package xdp carries the datagrams of hw/udp past the kernel's network stack,
// by AF_XDP sockets on the network interface that has the address.
//
// # Model
//
// A [Device] is an eBPF program on the interface, memory for frames that the
// kernel shares (UMEM), and sockets: one for each pair of a stripe and a receive queue.
// The program hands a frame that carries a datagram to our address and port to the
// socket of its stripe and queue; all else goes on to the kernel. A [Port] is the
// sockets of one stripe: it builds and parses Ethernet, IP and UDP headers
// itself.
//
// The UDP socket stays what owns the port. By it go datagrams for peers that are not on the
// interface, or have no known hardware address; what they cause, the
// kernel asking for the address, has the next ones go by the Port. Routes and
// neighbours are asked of the kernel by netlink when a peer is first sent to, and
// asked again when the kernel reports that they changed (package file route.go).
//
// # Limits
//
// A queue of an interface has the sockets of one process and one Device: the
// first one gets it, others are refused (EBUSY). Datagrams are not fragmented, and
// with the frames' headers they fit in a frame of [Options.MTU]'s size, at most
// 3840 bytes. VLAN tags, IP options and IPv6 extension headers are the
// kernel's business: such frames pass.
//
// No firewall rule, traffic shaping or IPsec policy of this host applies to
// what is sent and received here.
//
// # Threads
//
// A Port has one owner at a time. Ports of stripes that share a queue share its rings
// of free frames, under a lock that is taken once for a batch. [Device.Tick]
// is called by one goroutine, beside them. Close has no other calls beside it.
//
// # What others send
//
// Frames are checked as the kernel would: lengths, checksums, fragments,
// addresses. A frame that has the UDP checksum of the pseudo header alone is left to the
// kernel: its checksum is for hardware to compute that was not there, as between
// virtual interfaces, and it may be several datagrams that a kernel has
// joined, which only the kernel can take apart.
package xdp
