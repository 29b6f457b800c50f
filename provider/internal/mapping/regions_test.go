package mapping

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/token"
)

// element is n bytes from the at-th on of a region, and local memory.
func element(key, local uint64, at, n int) *dataplane.Element {
	return &dataplane.Element{Key: key, Local: local, Remote: regionBase + uint64(at), Len: uint64(n)}
}

// TestCopies writes and reads memory of a device of another process, of this process, and host memory of this process,
// each in one batch.
func TestCopies(t *testing.T) {
	d := open(t, nil)
	_, memory := host(regionBytes)
	regions := map[uint64]*own{
		1: here.add(1, own{rights: fi.RemoteRead | fi.RemoteWrite, memory: device(t)}),
		2: here.add(2, own{rights: fi.RemoteRead | fi.RemoteWrite, memory: device(t)}),
		3: here.add(3, own{rights: fi.RemoteRead | fi.RemoteWrite, memory: memory}),
	}
	d.Offer(1)
	remotes := []list.Region{remoteOf(1, token.DMABuf), remoteOf(2, token.DMABuf), remoteOf(3, token.Host)}
	remotes[1].(*remote).own, remotes[2].(*remote).own = true, true
	remotes = append(remotes, remotes[0])
	local := device(t)
	at := uint64(local.Parts[0].Base)
	for _, read := range []bool{false, true} {
		s := d.Map(remotes, true, read, at)
		for key, r := range regions {
			data := bytes.Repeat([]byte{byte(key), 0x80}, 50)
			from, to := at+1000*key, r.First()+10*key
			if read {
				from, to = to, from
				data[0] = 0x40
			}
			put(t, from, data)
			if how := s.Reach(key); how.By != list.ByCopy {
				t.Fatalf("region %d is reached by %v: %v", key, how.By, how.Err)
			}
			if err := s.Copy(element(key, at+1000*key, int(10*key), len(data))); err != nil {
				t.Fatal(err)
			}
			if err := s.Wait(); err != nil {
				t.Fatal(err)
			}
			want(t, "copied", to, data)
		}
		if left, _ := regions[2].left(); left {
			t.Error("the gate of this process's region is left while it is used")
		}
		s.End()
	}
	for key, r := range regions {
		if left, _ := r.left(); !left {
			t.Errorf("the gate of region %d is entered", key)
		}
	}
}

// TestReach: how regions are reached that are not mapped.
func TestReach(t *testing.T) {
	d := open(t, nil)
	hidden := open(t, func(c *config.Config) { c.Service = config.No })
	here.domain = d
	d.Offer(9)
	const rights = fi.RemoteRead | fi.RemoteWrite
	_, memory := host(regionBytes)
	here.add(1, own{rights: rights, memory: memory})
	here.add(2, own{rights: fi.RemoteRead, memory: device(t)})
	here.add(3, own{rights: rights, memory: device(t), buffer: 5})
	here.add(4, own{rights: rights, memory: device(t)})
	here.add(5, own{rights: rights, memory: device(t), domain: hidden})
	part := func(offset uint64) func(*remote) {
		return func(r *remote) {
			body := token.Device{Offset: offset}
			r.token.Parts = append(r.token.Parts, token.Part{Type: token.PartDMABuf, Body: body.Append(nil)})
		}
	}
	for what, c := range map[string]struct {
		key    uint64
		kind   token.Kind
		change func(r *remote)
		want   list.Means
	}{
		"host memory of another process": {1, token.Host, nil, list.ByOwner},
		"without the right":              {2, token.DMABuf, nil, list.ByMessage},
		"memory that was freed":          {3, token.DMABuf, nil, list.ByNone},
		"where the token says":           {4, token.DMABuf, part(regionBytes / 2), list.ByCopy},
		"not where the token says":       {4, token.DMABuf, part(regionBytes), list.ByNone},
		"not shared":                     {5, token.DMABuf, nil, list.ByMessage},
		"no such region":                 {7, token.DMABuf, nil, list.ByMessage},
		"longer than the region":         {4, token.DMABuf, func(r *remote) { r.token.Length++ }, list.ByMessage},
		"longer, of this process": {4, token.DMABuf, func(r *remote) { r.own, r.token.Length = true, regionBytes+1 },
			list.ByMessage},
		"another endpoint's":        {4, token.DMABuf, func(r *remote) { r.token.Incarnation++ }, list.ByMessage},
		"of this process, and gone": {7, token.DMABuf, func(r *remote) { r.own = true }, list.ByMessage},
		"out of reach":              {4, token.DMABuf, func(r *remote) { r.why = "it is far away" }, list.ByMessage},
	} {
		r := remoteOf(c.key, c.kind)
		if c.change != nil {
			c.change(r)
		}
		s := d.Map([]list.Region{r}, true, false, 0)
		how := s.Reach(c.key)
		if how.By != c.want || (how.By == list.ByNone) != errors.Is(how.Err, fi.EIO) {
			t.Errorf("%s: by %v, want %v: %v", what, how.By, c.want, how.Err)
		}
		if o := (list.Owner{PID: os.Getpid(), Incarnation: incarnation, Key: 1, Rights: fi.RemoteWrite}); how.By ==
			list.ByOwner && how.Owner != o {
			t.Errorf("%s: %+v", what, how.Owner)
		}
		s.End()
	}
	for key, r := range here.list {
		if left, hidden := r.left(); !left || hidden != (key == 5) {
			t.Errorf("region %d: left %t, hidden %t", key, left, hidden)
		}
	}
}

// TestFailed: after a copy has failed its mapping is used no more, and the next post has another.
func TestFailed(t *testing.T) {
	d := open(t, nil)
	r := here.add(1, own{rights: fi.RemoteRead | fi.RemoteWrite, memory: device(t)})
	d.Offer(1)
	remotes := []list.Region{remoteOf(1, token.DMABuf)}
	_, memory := host(100)
	el := element(1, uint64(memory.Parts[0].Base), 0, 100)
	put(t, r.First(), bytes.Repeat([]byte{1}, 100))
	s := d.Map(remotes, true, true, 0)
	if how := s.Reach(1); how.By != list.ByCopy {
		t.Fatalf("by %v: %v", how.By, how.Err)
	}
	before := s.regions[1].use.Mapping()
	undo := dmabuf.PretendFailing(unix.EIO)
	if err := s.Copy(el); err == nil {
		t.Error("copied where the device fails")
	}
	undo()
	if status := s.Failed(1, true); status != fi.EIO {
		t.Errorf("failed with %v", status)
	}
	s.End()
	s = d.Map(remotes, true, true, 0)
	defer s.End()
	if how := s.Reach(1); how.By != list.ByCopy || s.regions[1].use.Mapping() == before {
		t.Errorf("again: by %v, %v, the same mapping: %t", how.By, how.Err, s.regions[1].use.Mapping() == before)
	}
	if err := s.Copy(el); err != nil {
		t.Error(err)
	}
	want(t, "read again", el.Local, bytes.Repeat([]byte{1}, 100))
}
