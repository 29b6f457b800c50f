package weft_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-fabric/weft"
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// The benchmarks are one 8-byte message of an endpoint to itself, which is two operations, over package provider and
// over this package in both forms. The difference, by two, is what this package costs an operation.

func BenchmarkProvider(b *testing.B) {
	infos, err := provider.GetInfo(fi.Version(1, 20), "127.0.0.1", "0", fi.Source, &fi.Info{
		Caps:   fi.Tagged | fi.RMA | fi.Source | fi.DirectedRecv,
		Domain: &fi.DomainAttr{Threading: fi.ThreadSafe},
	})
	must(b, err)
	fabric, err := provider.OpenFabric(infos[0].Fabric)
	must(b, err)
	defer fabric.Close()
	domain, err := fabric.OpenDomain(infos[0])
	must(b, err)
	defer domain.Close()
	av, err := domain.OpenAV(&fi.AVAttr{})
	must(b, err)
	defer av.Close()
	queue, err := domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, WaitObj: fi.WaitFD}, nil)
	must(b, err)
	defer queue.Close()
	ep, err := domain.OpenEndpoint(infos[0])
	must(b, err)
	defer ep.Close()
	must(b, ep.BindAV(av, 0))
	must(b, ep.BindCQ(queue, fi.Transmit|fi.Recv))
	must(b, ep.Enable())
	name, err := ep.Name()
	must(b, err)
	self := make([]fi.Addr, 1)
	_, err = av.Insert(name, 1, &provider.Insertion{Addrs: self})
	must(b, err)

	in, out := make([]byte, 8), make([]byte, 8)
	recv := provider.RecvArgs{IOV: weft.Vector(in), Src: fi.AddrUnspec, Tag: 1, Tagged: true}
	send := provider.SendArgs{IOV: weft.Vector(out), Dest: self[0], Tag: 1, Tagged: true}
	var e [8]cq.Entry
	b.ReportAllocs()
	for b.Loop() {
		must(b, ep.PostRecv(&recv))
		must(b, ep.Send(&send))
		for left := 2; left > 0; {
			n, err := queue.Read(e[:])
			if err != nil && !errors.Is(err, fi.EAGAIN) {
				b.Fatal(err)
			}
			left -= n
		}
	}
}

func BenchmarkCompletionForm(b *testing.B) {
	e := open(b)
	self := peer(b, e, e)
	in, out := make([]byte, 8), make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		must(b, e.StartRecv(weft.Match{Tag: 1}, in, nil))
		must(b, e.StartSend(self, 1, out, nil))
		for left := 2; left > 0; {
			_, ok, err := e.Poll()
			must(b, err)
			if ok {
				left--
			}
		}
	}
}

func BenchmarkIterator(b *testing.B) {
	e := open(b)
	self := peer(b, e, e)
	in, out := make([]byte, 8), make([]byte, 8)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		must(b, e.StartRecv(weft.Match{Tag: 1}, in, nil))
		must(b, e.StartSend(self, 1, out, nil))
		left := 2
		for _, err := range e.Completions(ctx) {
			must(b, err)
			if left--; left == 0 {
				break
			}
		}
	}
}

func BenchmarkBlockingForm(b *testing.B) {
	e := open(b)
	self := peer(b, e, e)
	in, out := make([]byte, 8), make([]byte, 8)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		must(b, e.Send(ctx, self, 1, out))
		_, err := e.Recv(ctx, weft.Match{Tag: 1}, in)
		must(b, err)
	}
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}
