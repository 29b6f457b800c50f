package provider

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw/udp"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/service"
)

// enabled are the process's enabled endpoints.
var enabled service.Names[*Endpoint]

// serviceThread is the process's, of all domains that have use for it.
var serviceThread = service.Thread{
	Handlers: map[proxy.Kind]func(*proxy.Request){proxy.KindName: enabled.Answer},
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

// startService makes the domain a user of the service thread, if it has use for that.
func (d *Domain) startService() {
	if d.served = d.wantsService(); d.served {
		serviceThread.Acquire()
	}
}

func (d *Domain) stopService() {
	if d.served {
		serviceThread.Release()
	}
}

// every calls f again and again, after what it returns: on the service thread if the configuration wants that and there
// is one, else in a goroutine.
func (d *Domain) every(f func() time.Duration) (stop func()) {
	if d.cfg.ProbeService && d.served {
		if stop, ok := serviceThread.Every(f); ok {
			return stop
		}
	}
	return service.Every(f)
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
	serviceThread.Abort()
}
