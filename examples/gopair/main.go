// Command gopair is two processes that talk over package weft: the first prints its address, the second is given it.
//
//	gopair                    # prints an address and waits
//	gopair 127.0.0.1:40123    # sends it messages, and writes into its memory
package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/weft-fabric/weft"
)

// Tags of the messages.
const (
	tagHello = iota + 1
	tagToken
	tagWritten
)

const blocks, blockBytes = 16, 64 << 10

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gopair:", err)
		cancel()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	e, err := weft.Open(weft.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		return err
	}
	defer func() {
		if closing := e.Close(); err == nil {
			err = closing
		}
	}()
	if len(args) == 0 {
		return serve(ctx, e)
	}
	addr, err := netip.ParseAddrPort(args[0])
	if err != nil {
		return err
	}
	server, err := e.Peer(addr)
	if err != nil {
		return err
	}
	return write(ctx, e, server)
}

// serve gives the peer that greets it some memory, and shows what the peer wrote there.
func serve(ctx context.Context, e *weft.Endpoint) error {
	fmt.Println(e.Addr())
	hello := make([]byte, 64)
	m, err := e.Recv(ctx, weft.Match{Tag: tagHello}, hello)
	if err != nil {
		return err
	}
	// The greeting is the peer's address: an endpoint knows a sender whose address it was given before.
	addr, err := netip.ParseAddrPort(string(hello[:m.Len]))
	if err != nil {
		return err
	}
	client, err := e.Peer(addr)
	if err != nil {
		return err
	}
	region, err := e.Register(make([]byte, blocks*blockBytes), weft.RemoteWrite)
	if err != nil {
		return err
	}
	if err := e.Send(ctx, client, tagToken, []byte(region.Token())); err != nil {
		return err
	}
	if _, err := e.Recv(ctx, weft.Match{From: client, Tag: tagWritten}, nil); err != nil {
		return err
	}
	sum := 0
	for i := range blocks {
		sum += int(region.Bytes()[i*blockBytes])
	}
	fmt.Printf("%d blocks, the first bytes add up to %d\n", blocks, sum)
	return region.Close()
}

// write opens the server's memory and has all its blocks under way at a time.
func write(ctx context.Context, e *weft.Endpoint, server weft.Peer) error {
	if err := e.Send(ctx, server, tagHello, []byte(e.Addr().String())); err != nil {
		return err
	}
	token := make([]byte, 1024)
	m, err := e.Recv(ctx, weft.Match{Tag: tagToken}, token)
	if err != nil {
		return err
	}
	memory, err := e.OpenRemote(string(token[:m.Len]))
	if err != nil {
		return err
	}
	for i := range blocks {
		block := make([]byte, blockBytes)
		block[0] = byte(i)
		if err := e.StartWrite(memory, i*blockBytes, block, i); err != nil {
			return err
		}
	}
	left := blocks
	for _, err := range e.Completions(ctx) {
		if err != nil {
			return err
		}
		if left--; left == 0 {
			break
		}
	}
	if err := memory.Close(); err != nil {
		return err
	}
	return e.Send(ctx, server, tagWritten, nil)
}
