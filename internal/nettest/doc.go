// Package nettest makes networks for tests: two hosts, which are network
// namespaces of this machine, joined by a cable, which is a pair of veth
// interfaces, on which an eBPF program of ours loses, doubles, delays, damages
// and marks datagrams.
//
// A host is a thread: what [Host.Do] runs, and processes that it starts, see the host's network, and sockets that it
// opens stay in it whichever thread uses them. All of it goes away with the test.
//
// It needs root, and the programs ip and tc. A test without them is skipped and
// says so.
package nettest
