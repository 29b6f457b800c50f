// Command tokenpair is two processes, one of which hands its memory to the other as one line of text.
//
//	tokenpair                       # owns memory: prints its token, and its notifications
//	tokenpair weft1:d3Rvaw...       # writes pieces of a cache of its own there, and reads them back
//
// Between hosts both are given the addresses of their interfaces: tokenpair -addr 10.0.0.1.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

const (
	block  = 1024
	blocks = 8
)

// node is an endpoint and what it needs.
type node struct {
	fabric *provider.Fabric
	domain *provider.Domain
	av     *provider.AV
	queue  *cq.Queue
	ep     *provider.Endpoint
}

func main() {
	addr := flag.String("addr", "127.0.0.1", "address of this process's interface")
	flag.Parse()
	if err := run(*addr, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "tokenpair:", err)
		os.Exit(1)
	}
}

func run(addr, text string) error {
	n, err := open(addr)
	if err != nil {
		return err
	}
	if text == "" {
		err = n.own()
	} else {
		err = n.move(text)
	}
	if closing := n.close(); err == nil {
		err = closing
	}
	return err
}

func open(addr string) (n node, err error) {
	infos, err := provider.GetInfo(fi.Version(1, 20), addr, "0", fi.Source, &fi.Info{Caps: fi.RMA})
	if err != nil {
		return n, err
	}
	if n.fabric, err = provider.OpenFabric(infos[0].Fabric); err != nil {
		return n, err
	}
	if n.domain, err = n.fabric.OpenDomain(infos[0]); err != nil {
		return n, err
	}
	if n.av, err = n.domain.OpenAV(&fi.AVAttr{}); err != nil {
		return n, err
	}
	if n.queue, err = n.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged}, nil); err != nil {
		return n, err
	}
	if n.ep, err = n.domain.OpenEndpoint(infos[0]); err != nil {
		return n, err
	}
	if err = n.ep.BindAV(n.av, 0); err != nil {
		return n, err
	}
	if err = n.ep.BindCQ(n.queue, fi.Transmit|fi.Recv); err != nil {
		return n, err
	}
	return n, n.ep.Enable()
}

func (n *node) close() error {
	for _, c := range []interface{ Close() error }{n.ep, n.queue, n.av, n.domain, n.fabric} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// address is where a slice is. The slice must stay reachable while an operation uses it, and not be on a stack.
func address(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }

// own hands out memory, and waits until two posts have changed it.
func (n *node) own() error {
	memory := make([]byte, blocks*block)
	region, err := n.domain.RegMR(&fi.MRAttr{
		IOV:    []fi.IOVec{{Base: address(memory), Len: uint64(len(memory))}},
		Access: fi.RemoteRead | fi.RemoteWrite, RequestedKey: 1,
	}, 0)
	if err != nil {
		return err
	}
	token, err := region.Token(&provider.TokenAttr{Agent: "owner"})
	if err != nil {
		return err
	}
	fmt.Println(token) // the text may go any road; json.Marshal and gob take a Token, too
	for came := 0; came < 2; {
		notes, err := n.ep.Notes() // makes progress; the data is there before its notification
		if err != nil {
			return err
		}
		for _, note := range notes {
			fmt.Printf("%s wrote %s\n", note.Agent, note.Data)
		}
		came += len(notes)
	}
	for _, i := range []int{0, 2, 7} {
		text, _, _ := bytes.Cut(memory[i*block:][:block], []byte{0})
		fmt.Printf("%s\n", text)
	}
	return region.Close() // the token ends with it
}

// move writes every other block of a cache to the owner's memory, then two of them again, and reads all back.
func (n *node) move(text string) error {
	var token provider.Token
	if err := token.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	if err := n.ep.SetAgent("writer"); err != nil {
		return err
	}
	remote, err := n.ep.OpenToken(token) // the owner's address is in the address vector now
	if err != nil {
		return err
	}
	defer remote.Close()
	info := remote.Info()
	fmt.Printf("%s has %d bytes of %s memory, reached by %s\n", info.Agent, info.Length, info.Kind, info.Way)

	cache := make([]byte, 2*blocks*block)
	list, err := n.ep.NewList([]provider.Piece{{ // prepared once
		Local: address(cache), LocalStride: 2 * block, Remote: remote, Addr: info.Base, Len: block, Count: blocks,
	}})
	if err != nil {
		return err
	}
	defer list.Close()
	for i := range blocks {
		copy(cache[2*i*block:], fmt.Sprintf("block %d", i))
	}
	if err := n.post(list, &provider.ListArgs{Note: []byte("all")}); err != nil {
		return err
	}
	changed := []uint32{2, 7}
	for _, i := range changed {
		copy(cache[2*i*block:], fmt.Sprintf("block %d, changed", i))
	}
	want := bytes.Clone(cache)
	if err := n.post(list, &provider.ListArgs{Picks: changed, Note: []byte("two more")}); err != nil {
		return err
	}
	clear(cache)
	if err := n.post(list, &provider.ListArgs{Read: true}); err != nil {
		return err
	}
	if !bytes.Equal(cache, want) {
		return fmt.Errorf("read %q", cache[:32])
	}
	runtime.KeepAlive(cache)
	return nil
}

// post posts a list and waits for its end.
func (n *node) post(list *provider.List, a *provider.ListArgs) error {
	err := list.Post(a)
	for ; errors.Is(err, fi.EAGAIN); err = list.Post(a) { // until the owner is reached, and there is room
		n.ep.Progress()
	}
	if err != nil {
		return err
	}
	var entry [1]cq.Entry
	for {
		switch _, err := n.queue.Read(entry[:]); {
		case err == nil:
			return nil
		case errors.Is(err, fi.EAGAIN):
			n.ep.Progress()
		case errors.Is(err, fi.EAVAIL):
			e, err := n.queue.ReadErr()
			if err != nil {
				return err
			}
			return fmt.Errorf("element %d: %w, %d bytes are done", e.Data, e.Err, e.Len)
		default:
			return err
		}
	}
}
