package provider_test

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// bytesOf describes memory that an operation uses. It must not move or be
// collected meanwhile: a slice that stays reachable, and not on a stack.
func bytesOf(b []byte) []fi.IOVec {
	return []fi.IOVec{{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}}
}

// An endpoint sends itself a tagged message. Between two processes it is the
// same: the name of one is inserted by the other.
func Example() {
	infos, err := provider.GetInfo(fi.Version(1, 17), "127.0.0.1", "0", fi.Source, &fi.Info{Caps: fi.Tagged})
	if err != nil {
		fmt.Println(err)
		return
	}
	info := infos[0]
	fabric, err := provider.OpenFabric(info.Fabric)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fabric.Close()
	domain, err := fabric.OpenDomain(info)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer domain.Close()
	if err := talk(domain, info); err != nil {
		fmt.Println(err)
	}
	// Output: hello, tag 7, 5 bytes
}

func talk(domain *provider.Domain, info *fi.Info) error {
	av, err := domain.OpenAV(&fi.AVAttr{Type: fi.AVTable})
	if err != nil {
		return err
	}
	defer av.Close()
	queue, err := domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 16}, nil)
	if err != nil {
		return err
	}
	defer queue.Close()
	ep, err := domain.OpenEndpoint(info)
	if err != nil {
		return err
	}
	defer ep.Close()
	if err := ep.BindAV(av, 0); err != nil {
		return err
	}
	if err := ep.BindCQ(queue, fi.Transmit|fi.Recv); err != nil {
		return err
	}
	if err := ep.Enable(); err != nil {
		return err
	}
	name, err := ep.Name()
	if err != nil {
		return err
	}
	peers := make([]fi.Addr, 1)
	if _, err := av.Insert(name, 1, &provider.Insertion{Addrs: peers}); err != nil {
		return err
	}

	in, out := make([]byte, 64), []byte("hello")
	if err := ep.PostRecv(&provider.RecvArgs{IOV: bytesOf(in), Src: fi.AddrUnspec, Tag: 7, Tagged: true}); err != nil {
		return err
	}
	if err := ep.Send(&provider.SendArgs{IOV: bytesOf(out), Dest: peers[0], Tag: 7, Tagged: true,
		Inject: true}); err != nil {
		return err // fi.EAGAIN: try again after Progress
	}
	var done [1]cq.Entry
	for {
		ep.Progress()
		n, err := queue.Read(done[:])
		if n == 1 {
			fmt.Printf("%s, tag %d, %d bytes\n", in[:done[0].Len], done[0].Tag, done[0].Len)
			return nil
		}
		if !errors.Is(err, fi.EAGAIN) {
			return err
		}
	}
}
