package service

import (
	"sync"

	"github.com/weft-fabric/weft/internal/proxy"
)

// Names are the names of a process's enabled endpoints, as socket addresses, in no order. The zero Names is empty. Any
// thread may call its methods.
type Names[E comparable] struct {
	mu   sync.Mutex // control operations only
	list map[E][]byte
}

// Add enters an endpoint with its name, a socket address.
func (n *Names[E]) Add(e E, name []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.list == nil {
		n.list = map[E][]byte{}
	}
	n.list[e] = name
}

// Remove takes an endpoint out, if it is there.
func (n *Names[E]) Remove(e E) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.list, e)
}

// Find returns an endpoint that fits, which is called with the names locked. false: none does.
func (n *Names[E]) Find(fits func(E) bool) (found E, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.list {
		if fits(e) {
			return e, true
		}
	}
	return found, false
}

// Answer answers a request of [proxy.KindName] with a byte of length before each name; those that do not fit into one
// message are left out.
func (n *Names[E]) Answer(r *proxy.Request) { r.Reply(proxy.StatusOK, n.body(proxy.MaxBody)) }

// body is the answer in at most limit bytes.
func (n *Names[E]) body(limit int) (body []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.list {
		if len(name) < 256 && len(body)+1+len(name) <= limit {
			body = append(append(body, byte(len(name))), name...)
		}
	}
	return body
}
