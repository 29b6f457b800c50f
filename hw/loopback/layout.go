package loopback

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// geometry is where the parts of a segment are. It is copied out of the header
// and checked before the segment is used; nothing else decides an address.
type geometry struct {
	bytes        uint64
	ringOffset   uint64
	attachOffset uint64
	bounceOffset uint64
	ringLog2     uint32
	attachCount  uint32
	bounceCount  uint32
	bounceBytes  uint32
	bounceStride uint32
	keyOffset    uint64
	keyCount     uint32
	authCount    uint32
	authOffset   uint64
}

const pageBytes = 4096 // parts that are touched apart start on pages of their own

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// ringBytes is the size of one inbound ring.
func ringBytes(log2 uint32) uint64 { return ringHeader + hot.SlotBytes<<log2 }

// newGeometry lays out a segment for a checked configuration.
func newGeometry(c *Config) geometry {
	g := geometry{
		ringLog2:    uint32(c.RingLog2),
		attachCount: uint32(c.AttachCount),
		bounceCount: uint32(c.BounceCount),
		bounceBytes: uint32(roundUp(uint64(c.BounceBytes), hot.CacheLine)),
		keyCount:    uint32(c.KeyCount),
		authCount:   uint32(len(c.secrets())),
	}
	g.bounceStride = g.bounceBytes + uint32(bounceHeader)
	g.ringOffset = roundUp(headerBytes, hot.SlotBytes)
	g.attachOffset = roundUp(g.ringOffset+hot.RxRings*ringBytes(g.ringLog2), attachBytes)
	g.keyOffset = roundUp(g.attachOffset+uint64(g.attachCount)*attachBytes, pageBytes)
	g.authOffset = roundUp(g.keyOffset+g.keyBytes(), hot.CacheLine)
	g.bounceOffset = roundUp(g.authOffset+g.authBytes(), pageBytes)
	g.bytes = roundUp(g.bounceOffset+uint64(g.bounceCount)*uint64(g.bounceStride), pageBytes)
	return g
}

// keyBytes is the size of the key table and the claims.
func (g *geometry) keyBytes() uint64 {
	if g.keyCount == 0 {
		return 0
	}
	return uint64(g.keyCount)*keyBytes + hot.Claims*claimBytes
}

// authBytes is the size of the proofs of authorisation keys.
func (g *geometry) authBytes() uint64 { return uint64(g.authCount) * authBytes }

var errMalformed = errors.New("malformed segment")

// check reports whether every part lies inside a file of size bytes, apart from
// the others and aligned.
func (g *geometry) check(size uint64) error {
	bad := func(what string) error { return fmt.Errorf("%w: %s", errMalformed, what) }
	switch {
	case g.bytes != size || size > maxSegment:
		return bad("size")
	case g.ringLog2 < 1 || g.ringLog2 > MaxRingLog2:
		return bad("ring size")
	case g.attachCount < 1 || g.attachCount > MaxAttach:
		return bad("attach count")
	case g.bounceCount > MaxBounceCount || g.bounceBytes > MaxBounceBytes:
		return bad("bounce pool size")
	case uint64(g.bounceStride) < bounceHeader+uint64(g.bounceBytes) || g.bounceStride > 2*MaxBounceBytes:
		return bad("bounce stride")
	case g.keyCount > MaxKeys || g.keyCount&(g.keyCount-1) != 0:
		return bad("key table size")
	case g.authCount > hw.MaxKeys:
		return bad("number of authorisation keys")
	case (g.ringOffset|g.attachOffset|g.keyOffset|g.authOffset|g.bounceOffset|uint64(g.bounceStride))%hot.CacheLine !=
		0:
		return bad("alignment")
	}
	// The counts and strides above bound each part to less than 1<<42 bytes, so no sum overflows.
	end := headerBytes
	for _, part := range []struct {
		what        string
		offset, len uint64
	}{
		{"rings", g.ringOffset, hot.RxRings * ringBytes(g.ringLog2)},
		{"attach table", g.attachOffset, uint64(g.attachCount) * attachBytes},
		{"key table", g.keyOffset, g.keyBytes()},
		{"authorisation keys", g.authOffset, g.authBytes()},
		{"bounce pool", g.bounceOffset, uint64(g.bounceCount) * uint64(g.bounceStride)},
	} {
		if part.offset < end || part.offset > size || part.len > size-part.offset {
			return bad(part.what)
		}
		end = part.offset + part.len
	}
	return nil
}

// identity is what a header says about its segment besides the geometry.
type identity struct {
	cookie uint64
	owner  process
	bootID [2]uint64
	netns  uint64
	user   uint32
	name   sockaddr
	all    Families // at all of whose addresses it answers
	locked bool     // the owner holds a lock in the file's directory while it lives
	across bool     // it is reached from other network namespaces
}

// parseHeader checks a private copy of a header against the size of its file.
// Errors wrap errMalformed.
func parseHeader(h *hot.Segment, size uint64) (geometry, identity, error) {
	if h.Magic != hot.SegMagic || h.Version != hot.SegVersion {
		return geometry{}, identity{}, fmt.Errorf("%w: magic %#x, version %d", errMalformed, h.Magic, h.Version)
	}
	g := geometry{
		bytes: h.Bytes, ringOffset: h.RingOffset, attachOffset: h.AttachOffset, bounceOffset: h.BounceOffset,
		ringLog2: h.RingLog2, attachCount: h.AttachCount, bounceCount: h.BounceCount,
		bounceBytes: h.BounceBytes, bounceStride: h.BounceStride, keyOffset: h.KeyOffset, keyCount: h.KeyCount,
		authOffset: h.AuthOffset, authCount: h.AuthCount,
	}
	if err := g.check(size); err != nil {
		return geometry{}, identity{}, err
	}
	if h.NameBytes > uint32(len(h.Name)) {
		return geometry{}, identity{}, fmt.Errorf("%w: name of %d bytes", errMalformed, h.NameBytes)
	}
	name, err := parseStored(h.Name[:h.NameBytes], h.Number)
	if err != nil {
		return geometry{}, identity{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return g, identity{
		cookie: h.Cookie, owner: process{h.PID, h.StartTime, h.PIDNamespace}, bootID: h.BootID,
		netns: h.NetNamespace, user: h.UID, name: name, all: Families(h.Flags) & allFamilies,
		locked: h.Flags&hot.SegLocked != 0, across: h.Flags&hot.SegAcross != 0,
	}, nil
}

// header is the opposite of parseHeader.
func (g *geometry) header(id *identity) hot.Segment {
	return hot.Segment{
		Magic: hot.SegMagic, Version: hot.SegVersion,
		PID: id.owner.pid, StartTime: id.owner.start, Cookie: id.cookie, BootID: id.bootID,
		PIDNamespace: id.owner.pidns, NetNamespace: id.netns, UID: id.user,
		NameBytes: uint32(id.name.n), Name: id.name.raw, Number: uint32(id.name.number), Flags: id.flags(),
		Bytes: g.bytes, RingOffset: g.ringOffset, AttachOffset: g.attachOffset, BounceOffset: g.bounceOffset,
		RingLog2: g.ringLog2, AttachCount: g.attachCount, BounceCount: g.bounceCount,
		BounceBytes: g.bounceBytes, BounceStride: g.bounceStride, KeyOffset: g.keyOffset, KeyCount: g.keyCount,
		AuthOffset: g.authOffset, AuthCount: g.authCount,
	}
}

// flags are the header's.
func (id *identity) flags() uint32 {
	f := uint32(id.all)
	if id.locked {
		f |= hot.SegLocked
	}
	if id.across {
		f |= hot.SegAcross
	}
	return f
}
