package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/token"
)

// The format of memory tokens is package token's, their two ends are package tokens'. An owner gives one to others,
// which open it (token_open.go) and read and write lists of pieces of it (package list).
//
// A token names its region by a key that is random and that no other region has, so
// that a token which outlives its region, or its process, finds nothing. Where the
// domain chooses keys, that is the region's key. Where the application does, the
// region gets a second one with its first token: the alias. Both are good for
// the same accesses.

type (
	// Token is the serialised form of a memory token. It may be copied and compared.
	Token = tokens.Token
	// Remote is a peer's memory region, opened by its token. Its methods may be called from any thread.
	Remote = tokens.Remote
	// RemoteInfo is what is known of a remote region.
	RemoteInfo = tokens.Info
)

// TokenAttr says what a token is to have that the region does not say.
type TokenAttr struct {
	EP    *Endpoint // by which peers reach the region; nil: any enabled one of the domain
	Agent string    // what the application calls itself, at most token.MaxAgent bytes
}

// Token makes a token of the region. attr may be nil. The token is good until the
// region is closed, or spent (fi.MRSingleUse), and needs no peer to be known.
//
// Errors: fi.EBADF for a closed region; fi.EACCES for one that peers may not access; fi.EOPBADSTATE for one that is not
// enabled, or if no endpoint with an authorisation key of the region's is; fi.EDOMAIN for one of another domain;
// fi.EINVAL for one with no such key, a transmit context, a name that is too long, and more keys, of address vectors,
// than a token has room for, at least 32; fi.ENOSYS for connected endpoints.
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
	own := tokens.Own{
		Owner: peers.Address{Name: name, Number: owner.base.context}, Incarnation: owner.base.incarnation,
		Agent: attr.Agent, Key: key, Base: m.region.Base, Length: m.region.Length, Rights: m.region.Rights,
		Memory: &m.region.Memory, Process: owner.process.Body(owner.base.chosen.apart || m.region.Scope != nil),
		Rails: m.rails(owner), Shares: &m.domain.mappings,
	}
	return own.Make(m.region.Keys(owner.base.auth, owner.base.keys))
}

// tokenEndpoint is the endpoint by which a token says that the region is reached.
func (m *MR) tokenEndpoint(asked *Endpoint) (*Endpoint, error) {
	if asked == nil {
		fits := func(d driven) bool {
			e, ok := d.(*Endpoint)
			return ok && leads(&e.base.peering, &m.region) && e.base.conn == nil && !e.base.chosen.lossy
		}
		if d, ok := m.domain.drives.Find(fits); ok {
			return d.(*Endpoint), nil
		}
		return nil, fmt.Errorf("no endpoint of the domain is enabled that leads to the region: %w", fi.EOPBADSTATE)
	}
	switch {
	case asked.base.domain != m.domain:
		return nil, fmt.Errorf("the endpoint is another domain's: %w", fi.EDOMAIN)
	case asked.base.conn != nil || asked.base.chosen.lossy:
		return nil, fmt.Errorf("the endpoint is none of type FI_EP_RDM: %w", fi.ENOSYS)
	case asked.base.state.Load() != stateEnabled:
		return nil, fmt.Errorf("the endpoint is not enabled: %w", fi.EOPBADSTATE)
	case !leads(&asked.base.peering, &m.region):
		return nil, fmt.Errorf("a transmit context, or one without an authorisation key of the region's: %w", fi.EINVAL)
	}
	return asked, nil
}

// leads reports whether peers reach a region by an endpoint.
func leads(e *peering, r *peerRegion) bool { return !sendsOnly(e) && r.Leads(e.auth, e.keys) }

// tokenName is the name by which peers reach the endpoint, which is an address of
// the domain's interface for an endpoint that is bound to all.
func (e *Endpoint) tokenName() (names.Name, error) {
	raw, err := e.Name()
	if err != nil {
		return names.Name{}, err
	}
	n, err := names.Decode(e.base.format, raw)
	if err != nil {
		return n, err
	}
	return tokens.Reachable(n, e.base.domain.local.Locals, e.base.domain.DomainName())
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

// rails are the keys of the owner's devices that a token of the region has: those that no other region gets. The region
// is registered with the devices.
func (m *MR) rails(owner *Endpoint) (list []token.RDMA) {
	if owner.base.bound.counted() || m.region.OnDevice() && !owner.base.chosen.peerToPeer() || !m.region.Gate.Enter() {
		return nil
	}
	defer m.region.Gate.Leave()
	for _, d := range owner.base.transports.devicesOf {
		if key, lasts := m.region.Export(&m.domain.published, d.Memory, nil); lasts {
			list = append(list, token.RDMA{Address: d.DeviceAddress(), Key: key})
		}
	}
	return list
}
