package tokens

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/token"
)

// placed gives a token a place in an allocation that may be mapped.
func placed(t *token.Token) {
	d := token.Device{Offset: 8}
	t.Parts = append(t.Parts, token.Part{Type: token.PartDMABuf, Body: d.Append(nil)})
}

// TestWays: which way elements take, and why not the others, by the endpoint, its connection to the owner, the token,
// and where the owner is.
func TestWays(t *testing.T) {
	here, err := proc.This()
	if err != nil {
		t.Fatal(err)
	}
	neighbour := token.IPC{BootID: here.BootID, PIDNS: here.PIDNS, NetNS: here.NetNS, PID: here.Self.PID + 1}
	far, inside, apart, self := neighbour, neighbour, neighbour, neighbour
	far.BootID[0]++
	inside.NetNS++
	apart.PIDNS++
	self.PID--
	overDevice := Path{Name: "d", Device: true}
	device := func(e *endpoint, t *token.Token) { t.Kind = token.DMABuf }
	mapped := func(e *endpoint, t *token.Token) { t.Kind = token.DMABuf; placed(t) }
	for what, c := range map[string]struct {
		owner     *token.IPC
		change    func(e *endpoint, t *token.Token)
		way       list.Way
		ipc, rdma string // parts of why not, "": that way is open
	}{
		"a neighbour":       {&neighbour, nil, list.WayIPC, "", "ipc is faster|no RDMA device"},
		"another host":      {&far, nil, list.WayMessage, "on another host", "no RDMA device"},
		"of unknown place":  {nil, nil, list.WayMessage, "shares no memory", "no RDMA device"},
		"another namespace": {&inside, nil, list.WayMessage, "network namespace", "no RDMA device"},
		"searched across": {&inside, func(e *endpoint, _ *token.Token) { e.cfg.SHMAcross = config.Yes },
			list.WayIPC, "", "no RDMA"},
		"the kernel refuses": {&neighbour, func(e *endpoint, _ *token.Token) { e.attaches = false },
			list.WayMessage, "refused by the kernel", ""},
		"apart": {&neighbour, func(e *endpoint, _ *token.Token) { e.apart = true },
			list.WayMessage, "endpoint shares no memory", ""},
		"in order": {&neighbour, func(e *endpoint, _ *token.Token) { e.ordered = true },
			list.WayMessage, "in order", "in order"},
		"connected": {&far, func(e *endpoint, _ *token.Token) { e.up, e.path = true, Path{Attaches: true, Here: true} },
			list.WayIPC, "", "no RDMA device leads"},
		"connected, served by its owner": {nil, func(e *endpoint, _ *token.Token) {
			e.up, e.path = true, Path{Attaches: true, Here: true}
		}, list.WayMessage, "shares no memory", "no RDMA device leads"},
		"connected, refused": {&neighbour, func(e *endpoint, _ *token.Token) { e.up, e.path = true, Path{Here: true} },
			list.WayMessage, "kernel does not let", "no RDMA device leads"},
		"over a network": {&far, func(e *endpoint, _ *token.Token) { e.up, e.path = true, Path{Name: "eth7"} },
			list.WayMessage, "reached over eth7", "no RDMA device leads"},
		"over a device": {&far, func(e *endpoint, _ *token.Token) { e.up, e.path = true, overDevice },
			list.WayRDMA, "reached over d", ""},
		"a device, not yet": {&far, func(e *endpoint, _ *token.Token) { e.add('a', 1) }, list.WayMessage,
			"on another host", "not known"},
		"device memory":       {&neighbour, mapped, list.WayIPC, "", "registered with no RDMA device"},
		"of this process":     {&self, device, list.WayIPC, "", "registered with no RDMA device"},
		"not offered":         {&neighbour, device, list.WayMessage, "not offered", ""},
		"device, elsewhere":   {&far, mapped, list.WayMessage, "on another host", ""},
		"device, pids differ": {&apart, mapped, list.WayMessage, "another namespace", ""},
		"not to be mapped": {&neighbour, func(e *endpoint, t *token.Token) { mapped(e, t); e.maps = false },
			list.WayMessage, "may not map", ""},
		"mapping is off": {&neighbour, func(e *endpoint, t *token.Token) { mapped(e, t); e.cfg.HMEMMapSize = 0 },
			list.WayMessage, "HMEM_MAP_SIZE", ""},
		"ipc is off": {&neighbour, func(e *endpoint, t *token.Token) { e.cfg.TokenWays.IPC = false }, list.WayMessage,
			"TOKEN_WAYS", ""},
		"rdma is off": {&far, func(e *endpoint, t *token.Token) {
			e.up, e.path.Device, e.cfg.TokenWays.RDMA = true, true, false
		}, list.WayMessage, "", "TOKEN_WAYS"},
	} {
		e, o := newEndpoint()
		about := token.Token{Kind: token.Host}
		if c.owner != nil {
			about.Parts = append(about.Parts, token.Part{Type: token.PartIPC, Body: c.owner.Append(nil)})
		}
		if c.change != nil {
			c.change(e, &about)
		}
		i := (&Remote{ep: e, set: o, about: about}).Info()
		if i.Way != c.way || i.Why[i.Way] != "" {
			t.Errorf("%s: %v, %q", what, i.Way, i.Why)
		}
		for w, want := range map[list.Way]string{list.WayIPC: c.ipc, list.WayRDMA: c.rdma} {
			found := want == ""
			for _, part := range strings.Split(want, "|") {
				found = found || part != "" && strings.Contains(i.Why[w], part)
			}
			if !found || w != i.Way && i.Why[w] == "" {
				t.Errorf("%s: not by %v because %q", what, w, i.Why[w])
			}
		}
	}
}

// TestAllOff: with messages turned off no way is left to another host.
func TestAllOff(t *testing.T) {
	e, _ := newEndpoint()
	e.cfg.TokenWays.Message = false
	why := ByKey(e, 0, token.Token{}).Info().Why
	if why[list.WayIPC] == "" || why[list.WayRDMA] == "" || why[list.WayMessage] != TurnedOff {
		t.Errorf("%q", why)
	}
}

// TestByKey: of a region that is known by its key its owner is asked, so that no token needs to offer it.
func TestByKey(t *testing.T) {
	here, err := proc.This()
	if err != nil {
		t.Fatal(err)
	}
	e, _ := newEndpoint()
	p := token.IPC{BootID: here.BootID, PIDNS: here.PIDNS, NetNS: here.NetNS, PID: here.Self.PID + 1}
	about := token.Token{Key: 5, Kind: token.CUDA, Parts: []token.Part{{Type: token.PartIPC, Body: p.Append(nil)}}}
	r := ByKey(e, 4, about)
	pid, own, why := r.Process()
	if !r.Maps(0) || r.About().Addr != fi.Addr(4) || pid != int(p.PID) || own || why != "" || r.Acquire() != nil {
		t.Errorf("maps: %t, %+v, process %d, this one: %t, %q", r.Maps(0), r.About(), pid, own, why)
	}
}
