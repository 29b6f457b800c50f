package provider

import (
	"encoding"
	"fmt"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/token"
)

// Memory tokens (package token): what the owner of a region gives to others, which open
// it (token_open.go) and read and write lists of pieces of it (package list).
//
// A token names its region by a key that is random and that no other region has, so
// that a token which outlives its region, or its process, finds nothing. Where the
// domain chooses keys, that is the region's key. Where the application does, the
// region gets a second one with its first token: the alias. Both are good for
// the same accesses.

// Token is the serialised form of a memory token. It may be copied and compared.
type Token []byte

var (
	_ encoding.BinaryMarshaler   = Token(nil)
	_ encoding.TextMarshaler     = Token(nil)
	_ encoding.BinaryUnmarshaler = (*Token)(nil)
	_ encoding.TextUnmarshaler   = (*Token)(nil)
)

// ipcToken is the part of an endpoint's tokens that names its segment.
type ipcToken struct {
	ipcOnce sync.Once
	ipcBody []byte // once it was asked for; under ipcOnce
}

// MarshalBinary returns a copy of the bytes.
func (t Token) MarshalBinary() ([]byte, error) { return slices.Clone(t), nil }

// UnmarshalBinary takes a copy of bytes. Whether they are a token [Endpoint.OpenToken]
// says, which knows the authorisation key. fi.EINVAL: there are too many.
func (t *Token) UnmarshalBinary(b []byte) error {
	if len(b) > token.MaxLen {
		return fi.EINVAL
	}
	*t = slices.Clone(b)
	return nil
}

// MarshalText returns the text form: printable ASCII without spaces.
func (t Token) MarshalText() ([]byte, error) { return token.AppendText(nil, t), nil }

// UnmarshalText takes the text form. fi.EINVAL: it is none.
func (t *Token) UnmarshalText(text []byte) error {
	b, err := token.ParseText(text)
	if err != nil {
		return fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	return t.UnmarshalBinary(b)
}

// String is the text form.
func (t Token) String() string { return string(token.AppendText(nil, t)) }

// TokenAttr says what a token is to have that the region does not say.
type TokenAttr struct {
	EP    *Endpoint // by which peers reach the region; nil: any enabled one of the domain
	Agent string    // what the application calls itself, at most token.MaxAgent bytes
}

// Token makes a token of the region. attr may be nil. The token is good until the
// region is closed, or spent (fi.MRSingleUse), and needs no peer to be known.
//
// Errors: fi.EBADF for a closed region; fi.EACCES for one that peers may not access;
// fi.EOPBADSTATE for one that is not enabled, or if no endpoint of the domain with the region's
// authorisation key is enabled; fi.EDOMAIN for an endpoint of another domain; fi.EINVAL for one
// with another authorisation key, and for a name that is too long; fi.ENOSYS for connected
// endpoints, and in a domain with authorisation keys in address vectors.
func (m *MR) Token(attr *TokenAttr) (Token, error) {
	if attr == nil {
		attr = &TokenAttr{}
	}
	if m.refs.Acquire() != nil {
		return nil, fi.EBADF
	}
	defer m.refs.Release()
	t, err := m.makeToken(attr)
	if err != nil {
		return nil, refuse(log.MR, fi.ErrnoOf(err), "make a token: %v", err)
	}
	return t, nil
}

func (m *MR) makeToken(attr *TokenAttr) (Token, error) {
	switch {
	case m.domain.Keyed():
		return nil, fmt.Errorf("the domain's authorisation keys are in address vectors: %w", fi.ENOSYS)
	case !m.region.Remote():
		return nil, fmt.Errorf("peers may neither read nor write the region: %w", fi.EACCES)
	case m.Key() == fi.KeyNotAvail:
		return nil, fmt.Errorf("the region is not enabled: %w", fi.EOPBADSTATE)
	}
	owner, err := m.tokenEndpoint(attr.EP)
	if err != nil {
		return nil, err
	}
	name, err := owner.tokenName()
	if err != nil {
		return nil, err
	}
	key, err := m.tokenKey()
	if err != nil {
		return nil, err
	}
	t := token.Token{
		Owner: name, Incarnation: owner.incarnation, Agent: attr.Agent,
		Key: key, Base: m.region.Base, Length: m.region.Length, Rights: m.tokenRights(), Kind: m.tokenKind(),
		Parts: []token.Part{{Type: token.PartMessages}},
	}
	if body := owner.ipcPart(); body != nil {
		t.Parts = append(t.Parts, token.Part{Type: token.PartIPC, Body: body})
	}
	if part, ok := m.devicePart(); ok {
		t.Parts = append(t.Parts, part)
	}
	for _, r := range m.rails(owner) {
		t.AddRail(r)
	}
	packed, err := t.Append(nil, m.region.Auth.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	return packed, nil
}

// tokenEndpoint is the endpoint by which a token says that the region is reached.
func (m *MR) tokenEndpoint(asked *Endpoint) (*Endpoint, error) {
	if asked == nil {
		fits := func(d driven) bool {
			e, ok := d.(*Endpoint)
			return ok && e.auth == m.region.Auth && e.conn == nil && !e.lossy
		}
		if d, ok := m.domain.drives.Find(fits); ok {
			return d.(*Endpoint), nil
		}
		return nil, fmt.Errorf(
			"no endpoint of the domain is enabled by which peers could reach the region: %w", fi.EOPBADSTATE)
	}
	switch {
	case asked.domain != m.domain:
		return nil, fmt.Errorf("the endpoint is another domain's: %w", fi.EDOMAIN)
	case asked.conn != nil || asked.lossy:
		return nil, fmt.Errorf("the endpoint is none of type FI_EP_RDM: %w", fi.ENOSYS)
	case asked.auth != m.region.Auth:
		return nil, fmt.Errorf("the endpoint has another authorisation key: %w", fi.EINVAL)
	case asked.state.Load() != stateEnabled:
		return nil, fmt.Errorf("the endpoint is not enabled: %w", fi.EOPBADSTATE)
	}
	return asked, nil
}

// tokenName is the name by which peers reach the endpoint, which is an address of
// the domain's interface for an endpoint that is bound to all.
func (e *Endpoint) tokenName() (names.Name, error) {
	raw, err := e.Name()
	if err != nil {
		return names.Name{}, err
	}
	n, err := names.Decode(e.format, raw)
	if err != nil || !n.IsAny() {
		return n, err
	}
	locals, err := e.domain.local.Locals()
	if err != nil {
		return n, err
	}
	found := names.Name{}
	for _, l := range locals {
		if l.Name.Family == n.Family && (found.IsZero() || l.Iface == e.domain.DomainName()) {
			found = n.WithAddrOf(l.Name)
			if l.Iface == e.domain.DomainName() {
				break
			}
		}
	}
	if found.IsZero() {
		return n, fmt.Errorf("%v is bound to all addresses of this host, which has none: %w", n, fi.EADDRNOTAVAIL)
	}
	return found, nil
}

// tokenKey is the key that tokens of the region have.
func (m *MR) tokenKey() (uint64, error) {
	if m.domain.info.Domain.MRMode&(fi.MRBasic|fi.MRProvKey) != 0 {
		return m.key, nil
	}
	key, fresh, err := m.domain.regions.Alias(&m.region)
	if fresh {
		m.region.PublishAlias(&m.domain.published, key)
	}
	return key, err
}

func (m *MR) tokenRights() uint16 {
	rights := uint16(0)
	if m.region.Rights&fi.RemoteRead != 0 {
		rights |= token.Read
	}
	if m.region.Rights&fi.RemoteWrite != 0 {
		rights |= token.Write
	}
	return rights
}

func (m *MR) tokenKind() token.Kind {
	switch {
	case m.region.Memory.DMABuf != nil:
		return token.DMABuf
	case m.region.OnDevice():
		return token.CUDA
	}
	return token.Host
}

// ipcPart is what a token says of this process to others of its host, nil if the endpoint shares
// no memory with peers.
func (e *Endpoint) ipcPart() []byte {
	e.ipcOnce.Do(func() {
		h, err := proc.This()
		if err != nil || e.apart {
			return
		}
		p := token.IPC{BootID: h.BootID, PIDNS: h.PIDNS, NetNS: h.NetNS, PID: h.Self.PID, Start: h.Self.Start}
		e.ipcBody = p.Append(nil)
	})
	return e.ipcBody
}

// devicePart is what a token says of where the region is for processes that map its memory. False: they cannot.
func (m *MR) devicePart() (token.Part, bool) {
	if len(m.region.Memory.Shares) != 1 || !m.region.InOnePart() {
		return token.Part{}, false
	}
	s, typ := m.region.Memory.Shares[0], token.PartCUDA
	if m.region.Memory.DMABuf != nil {
		typ = token.PartDMABuf
	}
	_, offset, ok := m.domain.mappings.Share(uint64(m.region.Memory.Parts[0].Base), m.region.Length)
	if !ok {
		return token.Part{}, false
	}
	d := token.Device{Allocation: cuda.Pointer(s.Base()), Offset: offset, Buffer: s.Buffer()}
	return token.Part{Type: typ, Body: d.Append(nil)}, true
}
