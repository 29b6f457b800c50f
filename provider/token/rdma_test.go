package token

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// rails is a token with the keys of two devices. testdata has it as this version writes it.
func rails() *Token {
	t := sample()
	t.Kind, t.Device = Host, [16]byte{}
	t.AddRail(RDMA{[]byte("the first device's address"), []byte("a key of 30 bytes.............")})
	t.AddRail(RDMA{bytes.Repeat([]byte{2}, 40), bytes.Repeat([]byte{3}, 32)})
	return t
}

// TestRails reads a token of testdata with the keys of two devices, and finds that this version writes the same bytes.
func TestRails(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "v1-rdma.token"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := got.Rails()
	if len(list) != 2 || string(list[0].Address) != "the first device's address" || len(list[0].Key) != 30 ||
		!bytes.Equal(list[1].Address, bytes.Repeat([]byte{2}, 40)) ||
		!bytes.Equal(list[1].Key, bytes.Repeat([]byte{3}, 32)) {
		t.Errorf("%q", list)
	}
	if Version == 1 && !bytes.Equal(packed(t, rails(), nil), b) {
		t.Errorf("this version writes other bytes\n%s", AppendText(nil, packed(t, rails(), nil)))
	}
}

// TestRailsRoom shows that keys which find no room leave a token that has at most MaxLen bytes.
func TestRailsRoom(t *testing.T) {
	tok := sample()
	tok.Agent = strings.Repeat("a", MaxAgent)
	for i := range MaxRails + 2 {
		tok.AddRail(RDMA{bytes.Repeat([]byte{byte(i)}, 4), make([]byte, 4)})
	}
	if n := len(tok.Rails()); n != MaxRails {
		t.Errorf("%d keys, want %d", n, MaxRails)
	}
	tok = sample()
	for i := range MaxRails {
		tok.AddRail(RDMA{bytes.Repeat([]byte{byte(i)}, MaxRDMAField), make([]byte, MaxRDMAField)})
	}
	if n := len(tok.Rails()); n == 0 || n == MaxRails || len(packed(t, tok, nil)) > MaxLen {
		t.Errorf("%d keys in %d bytes", n, len(packed(t, tok, nil)))
	}
	for what, r := range map[string]RDMA{
		"no address": {nil, []byte{1}}, "no key": {[]byte{1}, nil},
		"long address": {make([]byte, MaxRDMAField+1), []byte{1}},
		"long key":     {[]byte{1}, make([]byte, MaxRDMAField+1)}, "again": {tok.Rails()[0].Address, []byte{1}},
	} {
		before := len(tok.Parts)
		if tok.AddRail(r); len(tok.Parts) != before {
			t.Errorf("%s: it is in the token", what)
		}
	}
}

// TestForgedRails gives out tokens whose seals are right and whose devices' parts are not.
func TestForgedRails(t *testing.T) {
	good := packed(t, rails(), nil)
	one := RDMA{[]byte("address"), []byte("key")}
	body := one.Append(nil)
	part := append([]byte{byte(PartRDMA), 0, byte(len(body)), 0}, body...)
	first := bytes.Index(good, []byte("the first device's address")) - rdmaFieldHead
	for what, change := range map[string]func(b []byte){
		"the address claims more":    func(b []byte) { b[first]++ },
		"the key claims more":        func(b []byte) { b[first+2]++ },
		"lengths wrap":               func(b []byte) { copy(b[first:], "\xff\xff\xff\xff") },
		"no address":                 func(b []byte) { b[first] = 0 },
		"no key":                     func(b []byte) { b[first+2] = 0 },
		"an address beyond its part": func(b []byte) { b[first], b[first+2] = MaxRDMAField, 1 },
		"the body is shorter":        func(b []byte) { b[first-2]-- },
	} {
		refused(t, what, reseal(good, change), nil)
	}
	for n := range MaxRails + 2 {
		tok := sample()
		b := packed(t, tok, nil)
		grown := bytes.Clone(b[:len(b)-sealLen])
		for i := range n {
			other := bytes.Clone(part)
			other[partHead+rdmaFieldHead] = byte(i)
			grown = append(grown, other...)
		}
		grown = append(grown, make([]byte, sealLen)...)
		grown[6], grown[7] = byte(len(grown)), byte(len(grown)>>8)
		grown = reseal(grown, func([]byte) {})
		if got, err := Parse(grown, nil); (err == nil) != (n <= MaxRails) || err == nil && len(got.Rails()) != n {
			t.Errorf("%d keys: %v", n, err)
		}
		if n == 2 {
			at := len(grown) - sealLen - len(part) + partHead + rdmaFieldHead
			refused(t, "two keys for one device", reseal(grown, func(b []byte) { b[at] = 0 }), nil)
		}
	}
}

// TestRDMALonger reads a body with fields of later versions behind those that are known, and refuses it cut.
func TestRDMALonger(t *testing.T) {
	r := RDMA{[]byte("address"), []byte("key")}
	b := r.Append(nil)
	got, ok := ParseRDMA(append(bytes.Clone(b), "new fields"...))
	if !ok || string(got.Address) != "address" || string(got.Key) != "key" {
		t.Errorf("%q, %t", got, ok)
	}
	for n := range b {
		if _, ok := ParseRDMA(b[:n]); ok {
			t.Errorf("%d bytes parse", n)
		}
	}
}

// TestCheckRegion: a device's key names the token's region if it has its range and its rights, and no others.
func TestCheckRegion(t *testing.T) {
	k := rails()
	k.Base, k.Length, k.Rights = 4096, 100, Read|Write
	same := hw.Region{Base: 4096, Len: 100, Access: hw.RemoteRead | hw.RemoteWrite}
	if err := k.CheckRegion(same); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(r *hw.Region){
		"base":          func(r *hw.Region) { r.Base++ },
		"length":        func(r *hw.Region) { r.Len-- },
		"fewer rights":  func(r *hw.Region) { r.Access = hw.RemoteRead },
		"another right": func(r *hw.Region) { r.Access |= hw.LocalWrite },
	} {
		r := same
		if change(&r); k.CheckRegion(r) == nil {
			t.Errorf("%s: not seen", what)
		}
	}
}
