package provider

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
)

// The process's service thread answers other processes of the same user: which
// endpoints there are, and what weft's threads are at (for weft top). There is
// one for all domains. It starts with the first domain that has use for it and
// ends with the last.
var service struct {
	sync.Mutex // control operations only
	users      int
	running    *proxy.Service
}

// wantsService reports whether a domain has use for the service thread.
func (d *Domain) wantsService() bool {
	switch d.cfg.Service {
	case config.Yes:
		return true
	case config.No:
		return false
	}
	return d.threaded()
}

// startService counts a domain that uses the service. A process whose address is
// taken (by one that forked from it and is still there) goes without: nothing
// that applications are promised depends on it.
func (d *Domain) startService() {
	if d.served = d.wantsService(); !d.served {
		return
	}
	service.Lock()
	defer service.Unlock()
	if service.users++; service.users > 1 {
		return
	}
	s, err := proxy.StartService(proxy.ServiceOptions{
		Name:     "weft-service",
		Address:  proxy.OwnAddress("service"),
		Place:    proxy.Placement{Node: -1},
		Handlers: map[proxy.Kind]func(*proxy.Request){proxy.KindName: answerNames},
		Logf:     func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	})
	if err != nil {
		log.Warnf(log.Domain, "no service thread: %v", err)
	}
	service.running = s
}

func (d *Domain) stopService() {
	if !d.served {
		return
	}
	service.Lock()
	defer service.Unlock()
	if service.users--; service.users == 0 && service.running != nil {
		service.running.Stop(stopTime)
		service.running = nil
	}
}

// endpointNames are the names of the process's enabled endpoints, as socket
// addresses, in no order.
var endpointNames struct {
	sync.Mutex // control operations only
	list       map[*Endpoint][]byte
}

func addName(e *Endpoint) {
	endpointNames.Lock()
	defer endpointNames.Unlock()
	if endpointNames.list == nil {
		endpointNames.list = map[*Endpoint][]byte{}
	}
	endpointNames.list[e] = e.name.AppendSockaddr(nil)
}

func removeName(e *Endpoint) {
	endpointNames.Lock()
	defer endpointNames.Unlock()
	delete(endpointNames.list, e)
}

// answerNames answers with a byte of length before each name; those that do
// not fit into one message are left out.
func answerNames(r *proxy.Request) {
	endpointNames.Lock()
	var body []byte
	for _, name := range endpointNames.list {
		if len(name) < 256 && len(body)+1+len(name) <= proxy.MaxBody {
			body = append(append(body, byte(len(name))), name...)
		}
	}
	endpointNames.Unlock()
	r.Reply(proxy.StatusOK, body)
}

// Settle waits, at the end of the process, until what endpoints that are closed had sent is with its
// receivers, or these do not answer.
func Settle() { udp.Settle() }

// Shutdown ends weft's threads at the end of the process, at once: what they
// would still write to may be gone soon.
func Shutdown() {
	opened.mu.Lock()
	domains := slices.Clone(opened.domains)
	opened.mu.Unlock()
	for _, d := range domains {
		d.threads.mu.Lock()
		for _, t := range d.threads.list {
			_ = t.Abort() // descriptors that cannot be closed do not matter now
		}
		d.threads.mu.Unlock()
	}
	service.Lock()
	defer service.Unlock()
	if service.running != nil {
		service.running.Abort()
	}
}
