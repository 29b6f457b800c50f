package provider_test

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// peer is an endpoint with what it needs. In a program of its own it is made as in the example of
// the package.
type peer struct {
	fabric *provider.Fabric
	domain *provider.Domain
	av     *provider.AV
	queue  *cq.Queue
	events *eq.Queue
	ep     *provider.Endpoint
}

func (p *peer) open(caps uint64) error {
	infos, err := provider.GetInfo(fi.Version(1, 20), "127.0.0.1", "0", fi.Source, &fi.Info{Caps: caps})
	if err != nil {
		return err
	}
	if p.fabric, err = provider.OpenFabric(infos[0].Fabric); err != nil {
		return err
	}
	if p.domain, err = p.fabric.OpenDomain(infos[0]); err != nil {
		return err
	}
	if p.av, err = p.domain.OpenAV(&fi.AVAttr{}); err != nil {
		return err
	}
	if p.queue, err = p.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged}, nil); err != nil {
		return err
	}
	if p.events, err = p.fabric.OpenEQ(&fi.EQAttr{}); err != nil {
		return err
	}
	if p.ep, err = p.domain.OpenEndpoint(infos[0]); err != nil {
		return err
	}
	if err = p.ep.BindAV(p.av, 0); err != nil {
		return err
	}
	if err = p.ep.BindCQ(p.queue, fi.Transmit|fi.Recv); err != nil {
		return err
	}
	if err = p.ep.BindEQ(p.events, 0); err != nil {
		return err
	}
	return p.ep.Enable()
}

func (p *peer) close() {
	for _, c := range []interface{ Close() error }{p.ep, p.events, p.queue, p.av, p.domain, p.fabric} {
		if err := c.Close(); err != nil {
			fmt.Println(err)
		}
	}
}

// One process hands out a token of its memory as text; another, which knows nothing else of it, writes every
// other cache block of its own there, and then some of them again, and notifies the owner.
func ExampleEndpoint_OpenToken() {
	var owner, writer peer
	for _, p := range []*peer{&owner, &writer} {
		if err := p.open(fi.RMA); err != nil {
			fmt.Println(err)
			return
		}
		defer p.close()
	}
	memory := make([]byte, 8*1024)
	region, err := owner.domain.RegMR(&fi.MRAttr{IOV: bytesOf(memory), Access: fi.RemoteWrite, RequestedKey: 1}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer region.Close()
	token, err := region.Token(&provider.TokenAttr{Agent: "decode-3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := writer.write(&owner, token.String()); err != nil { // the text may come by any road
		fmt.Println(err)
	}
	for notified := 0; notified < 2; { // each comes when what it reports is there
		notes, err := owner.ep.Notes()
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, n := range notes {
			fmt.Printf("notified: %s\n", n.Data)
		}
		notified += len(notes)
	}
	fmt.Printf("%s %s\n", memory[:5], memory[7*1024:7*1024+5])
	runtime.KeepAlive(memory)
	// Output:
	// decode-3 has 8192 bytes of host memory
	// notified: 0 blocks chosen
	// notified: 2 blocks chosen
	// block block
}

func (p *peer) write(owner *peer, text string) error {
	var token provider.Token
	if err := token.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	remote, err := p.ep.OpenToken(token)
	if err != nil {
		return err
	}
	defer remote.Close()
	info := remote.Info()
	fmt.Printf("%s has %d bytes of %s memory\n", info.Agent, info.Length, info.Kind)

	cache := make([]byte, 16*1024)
	for i := range 16 {
		copy(cache[i*1024:], "block")
	}
	list, err := p.ep.NewList([]provider.Piece{
		{Local: bytesOf(cache)[0].Base, LocalStride: 2048, Remote: remote, Addr: info.Base, Len: 1024, Count: 8},
	})
	if err != nil {
		return err
	}
	defer list.Close()
	for _, picks := range [][]uint32{nil, {2, 7}} {
		post := &provider.ListArgs{Picks: picks, Note: fmt.Appendf(nil, "%d blocks chosen", len(picks))}
		err := list.Post(post)
		for ; errors.Is(err, fi.EAGAIN); err = list.Post(post) { // the owner comes up, or room
			p.ep.Progress()
			owner.ep.Progress() // which another process does by itself
		}
		if err != nil {
			return err
		}
		if err := p.done(owner); err != nil {
			return err
		}
	}
	runtime.KeepAlive(cache)
	return nil
}

// done waits for a completion.
func (p *peer) done(owner *peer) error {
	var entry [1]cq.Entry
	for {
		n, err := p.queue.Read(entry[:])
		switch {
		case n == 1:
			return nil
		case errors.Is(err, fi.EAVAIL):
			e, err := p.queue.ReadErr()
			if err != nil {
				return err
			}
			return fmt.Errorf("element %d: %w, %d bytes are written", e.Data, e.Err, e.Len)
		case !errors.Is(err, fi.EAGAIN):
			return err
		}
		p.ep.Progress()
		owner.ep.Progress()
	}
}
