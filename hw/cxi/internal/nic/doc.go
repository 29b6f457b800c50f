// Package nic is the data path of the NIC: its command queues and event queues,
// which are memory that both sides read and write, and the commands and events in
// them.
//
// Nothing here calls a library, allocates or needs the Go runtime. Formats are
// those of package wire. A queue has one user at a time.
package nic
