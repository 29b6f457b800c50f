// Package sock is the sockets of hw/udp: addresses, groups of sockets that
// share one address and port, many datagrams in one system call, and what the
// kernel has to say about datagrams that did not arrive.
//
// # Groups
//
// A group is one socket for each stripe, all bound to one address with
// SO_REUSEPORT. The first is bound without it, so that the kernel refuses an
// address that another process has. Another process of the same user could join
// the group afterwards, but no datagram would go there: a datagram goes to the socket that byte 1
// of its payload names, by an eBPF program; where that is not allowed, by a
// classic BPF program, which every process may attach; where even that does not
// work the group is one socket.
//
// # Batches
//
// [Out] collects datagrams for one sendmmsg, and joins those for one peer to one
// message that the kernel, or the network interface, cuts up (UDP_SEGMENT).
// [In] receives with one recvmmsg what the kernel has joined (UDP_GRO).
//
// # Bypass
//
// A socket may have a [Bypass], which sends and receives for it past the kernel's
// network stack. What the bypass does not take goes the ordinary way.
//
// # Short datagrams, and a busy peer
//
// Where the rights allow it the kernel puts short datagrams into memory that it shares
// with the process (inbox.go). A group of one socket may have another that is connected
// to one peer ([Socket.WantsNear]).
//
// A group's sockets, an Out and an In each have one owner at a time.
package sock
