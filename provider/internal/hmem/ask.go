package hmem

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/proxy"
)

// owners are connections to the descriptor threads of other processes, kept until they fail or the process ends.
var owners struct {
	mu   sync.Mutex // taken once for each question
	list map[ownerKey]*proxy.Client
}

// ownerKey is a process that is asked. Requests to copy have a connection of their own: they last.
type ownerKey struct {
	pid    int
	copies bool
}

// copyTime bounds a request to copy. It ends with the owner's process: one that is stopped must not copy when it goes
// on, after the operation has ended.
const copyTime = 24 * time.Hour

// Ask asks the descriptor thread of a process, and waits for its answer: long where it is to copy. A
// *proxy.StatusError says why it refuses.
func Ask(pid int, kind proxy.Kind, body []byte) ([]byte, error) {
	to, limit := ownerKey{pid, kind == proxy.KindCopy}, fetchTime
	if to.copies {
		limit = copyTime
	}
	owners.mu.Lock()
	c := owners.list[to]
	owners.mu.Unlock()
	for fresh := false; ; {
		if c == nil {
			var err error
			if c, err = proxy.Dial(proxy.PeerAddress("fd", pid), limit); err != nil {
				return nil, err
			}
			fresh = true
			if c.PID() != pid {
				_ = c.Close()
				return nil, fmt.Errorf("process %d answers for process %d", c.PID(), pid)
			}
		}
		answer, err := c.Call(kind, body)
		if s := (*proxy.StatusError)(nil); err == nil || errors.As(err, &s) {
			keepOwner(to, c)
			return answer, err
		}
		forgetOwner(to, c)
		if c = nil; fresh {
			return nil, err
		}
	}
}

// keepOwner keeps a connection for the next question.
func keepOwner(to ownerKey, c *proxy.Client) {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if owners.list == nil {
		owners.list = map[ownerKey]*proxy.Client{}
	}
	if old := owners.list[to]; old != c && old != nil {
		_ = c.Close()
		return
	}
	owners.list[to] = c
}

// forgetOwner closes a connection. No request that is under way is waited for, here and below: its owner may be
// stopped.
func forgetOwner(to ownerKey, c *proxy.Client) {
	owners.mu.Lock()
	if owners.list[to] == c {
		delete(owners.list, to)
	}
	owners.mu.Unlock()
	_ = c.Close()
}

// forgetProcess closes the connections to a process that has ended.
func forgetProcess(pid int) {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	for to, c := range owners.list {
		if to.pid == pid {
			_ = c.Close()
			delete(owners.list, to)
		}
	}
}

// forgetOwners closes all connections.
func forgetOwners() {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	for _, c := range owners.list {
		_ = c.Close()
	}
	owners.list = nil
}
