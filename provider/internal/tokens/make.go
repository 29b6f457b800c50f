package tokens

import (
	"fmt"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/token"
)

// Own is what a token is to say of a region of this process.
type Own struct {
	Owner       peers.Address // by which peers reach the endpoint, or a receive context of a scalable one
	Incarnation uint64        // of the endpoint
	Agent       string        // what the application calls itself
	Key         uint64        // that no other region has
	Base        uint64        // by which peers name the first byte
	Length      uint64        // bytes
	Rights      uint64        // fi.RemoteRead, fi.RemoteWrite
	Memory      *hmem.Region
	Process     []byte       // Process.Body of the endpoint's
	Rails       []token.RDMA // keys of devices that no other region gets
	Shares      Sharer
}

// Sharer has other processes map memory of devices.
type Sharer interface {
	// Share returns the token of the allocation that n bytes at addr lie in, and where in it. False: other processes
	// cannot map it.
	Share(addr, n uint64) (token, offset uint64, ok bool)
}

// Make makes the token, sealed with authorisation keys. fi.EINVAL: it is too long, as by its agent, or their number.
func (o *Own) Make(keys [][]byte) (Token, error) {
	t := token.Token{
		Owner: o.Owner.Name, Incarnation: o.Incarnation, Agent: o.Agent,
		Key: o.Key, Base: o.Base, Length: o.Length, Rights: o.rights(), Kind: o.kind(),
		Parts: []token.Part{{Type: token.PartMessages}},
	}
	if o.Owner.Number != 0 {
		t.Parts = append(t.Parts, token.ContextPart(o.Owner.Number))
	}
	if o.Process != nil {
		t.Parts = append(t.Parts, token.Part{Type: token.PartIPC, Body: o.Process})
	}
	if part, ok := o.place(); ok {
		t.Parts = append(t.Parts, part)
	}
	if len(keys) <= 1 { // there is room, and RDMA devices cannot authenticate anyway
		for _, r := range o.Rails {
			t.AddRail(r)
		}
	}
	packed, err := t.Append(nil, keys...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	return packed, nil
}

func (o *Own) rights() uint16 {
	rights := uint16(0)
	if o.Rights&fi.RemoteRead != 0 {
		rights |= token.Read
	}
	if o.Rights&fi.RemoteWrite != 0 {
		rights |= token.Write
	}
	return rights
}

func (o *Own) kind() token.Kind {
	switch {
	case o.Memory.DMABuf != nil:
		return token.DMABuf
	case o.Memory.Named != nil:
		return token.CUDA
	}
	return token.Host
}

// place is what a token says of where the region is for processes that map its memory. False: they cannot.
func (o *Own) place() (token.Part, bool) {
	m := o.Memory
	if len(m.Shares) != 1 || len(m.Parts) != 1 {
		return token.Part{}, false
	}
	s, typ := m.Shares[0], token.PartCUDA
	if m.DMABuf != nil {
		typ = token.PartDMABuf
	}
	_, offset, ok := o.Shares.Share(uint64(m.Parts[0].Base), o.Length)
	if !ok {
		return token.Part{}, false
	}
	d := token.Device{Allocation: cuda.Pointer(s.Base()), Offset: offset, Buffer: s.Buffer()}
	return token.Part{Type: typ, Body: d.Append(nil)}, true
}

// Process is what the tokens of an endpoint say of this process to others of its host.
type Process struct {
	once sync.Once
	text []byte // once it was asked for; under once
}

// Body is the body of the part, nil if the process has no identity, or shares not the memory with peers: apart.
func (p *Process) Body(apart bool) []byte {
	if apart {
		return nil
	}
	p.once.Do(func() {
		h, err := proc.This()
		if err != nil {
			return
		}
		b := token.IPC{BootID: h.BootID, PIDNS: h.PIDNS, NetNS: h.NetNS, PID: h.Self.PID, Start: h.Self.Start}
		p.text = b.Append(nil)
	})
	return p.text
}

// Reachable is a name by which peers on other hosts reach an endpoint: its own, but for one that is bound to all
// addresses of this host, which are here, one of them: of an interface if that has one. fi.EADDRNOTAVAIL: the host has
// none of the family.
func Reachable(n names.Name, here func() ([]names.Local, error), iface string) (names.Name, error) {
	if !n.IsAny() {
		return n, nil
	}
	locals, err := here()
	if err != nil {
		return n, err
	}
	found := names.Name{}
	for _, l := range locals {
		if l.Name.Family == n.Family && (found.IsZero() || l.Iface == iface) {
			found = n.WithAddrOf(l.Name)
			if l.Iface == iface {
				break
			}
		}
	}
	if found.IsZero() {
		return n, fmt.Errorf("%v is bound to all addresses of this host, which has none: %w", n, fi.EADDRNOTAVAIL)
	}
	return found, nil
}
