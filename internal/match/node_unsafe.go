package match

import "unsafe"

// A Recv and a Message are views of a node: they have its size, and what they share is at the same place.
const (
	_ = uint(128 - unsafe.Sizeof(node{}))
	_ = uint(unsafe.Sizeof(node{}) - 128)
	_ = uint(128 - unsafe.Sizeof(Recv{}))
	_ = uint(unsafe.Sizeof(Recv{}) - 128)
	_ = uint(128 - unsafe.Sizeof(Message{}))
	_ = uint(unsafe.Sizeof(Message{}) - 128)
	_ = uint(unsafe.Offsetof(node{}.links) - unsafe.Offsetof(Recv{}.link))
	_ = uint(unsafe.Offsetof(Recv{}.link) - unsafe.Offsetof(node{}.links))
	_ = uint(unsafe.Offsetof(node{}.links) - unsafe.Offsetof(Message{}.links))
	_ = uint(unsafe.Offsetof(Message{}.links) - unsafe.Offsetof(node{}.links))
	_ = uint(unsafe.Offsetof(node{}.links) - 64) // links start the second cache line
	_ = uint(64 - unsafe.Offsetof(node{}.links))
)

func recvOf(n *node) *Recv       { return (*Recv)(unsafe.Pointer(n)) }
func messageOf(n *node) *Message { return (*Message)(unsafe.Pointer(n)) }
func (r *Recv) node() *node      { return (*node)(unsafe.Pointer(r)) }
func (m *Message) node() *node   { return (*node)(unsafe.Pointer(m)) }
