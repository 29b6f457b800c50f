package av

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// InsertSvc inserts the endpoint that a node and a service name: a numeric
// address or host name and a port number or service name, or an FI_ADDR_STR
// address and no service. Results are as those of Insert, and fi.ENODATA for
// what cannot be resolved. Errors are as those of Insert, and fi.EINVAL without
// a node.
func (a *AV) InsertSvc(node, service string, in *Insertion) (int, error) {
	if node == "" {
		return 0, fi.EINVAL
	}
	// Resolving can take long, so it comes before the lock.
	n, err := a.resolve(node, service)
	return a.insert(1, func(int) (names.Name, error) { return n, err }, in)
}

// resolve returns the one name among those that a node and a service stand for
// that suits best: in the address vector's format, and on this host.
func (a *AV) resolve(node, service string) (names.Name, error) {
	list, err := a.o.Resolve(node, service)
	if err != nil {
		return names.Name{}, err
	}
	var best names.Name
	for _, n := range list {
		if !names.Fits(a.o.Format, n) {
			continue
		}
		if a.o.Here(n) {
			return n, nil
		}
		if best.IsZero() {
			best = n
		}
	}
	if best.IsZero() {
		return best, fmt.Errorf("node %q has no address in address format %d: %w", node, a.o.Format, fi.EINVAL)
	}
	return best, nil
}

// SymCount returns the number of addresses that InsertSym inserts. fi.EINVAL if
// a count is 0 or there are more than fit into 32 bits.
func SymCount(nodes, services uint64) (int, error) {
	if nodes == 0 || services == 0 || nodes > 1<<32/services {
		return 0, fi.EINVAL
	}
	return int(nodes * services), nil
}

// InsertSym inserts the endpoints of a range of nodes with a range of services
// each: node, the node after it and so on, all services of a node before the
// next node. The node after a numeric address is the next address; the node
// after a host name has the number at the end of the name increased by one.
// Results and errors are as those of InsertSvc, and fi.EINVAL for counts that
// SymCount refuses and for a host name without a number when there are several
// nodes.
func (a *AV) InsertSym(node string, nodes uint64, service string, services uint64, in *Insertion) (int, error) {
	count, err := SymCount(nodes, services)
	if err != nil {
		return 0, err
	}
	if nodes > a.Limit() {
		return 0, fmt.Errorf("%d nodes, the address vector holds %d addresses: %w", nodes, a.Limit(), fi.ENOMEM)
	}
	if node == "" || names.IsAddrStr(node) {
		return 0, fi.EINVAL
	}
	at, err := nodeRange(node, nodes)
	if err != nil {
		return 0, err
	}
	type resolved struct {
		name names.Name
		err  error
	}
	list := make([]resolved, nodes)
	for i := range list {
		if s, ok := at(uint64(i)); ok {
			list[i].name, list[i].err = a.resolve(s, service)
		} else {
			list[i].err = fmt.Errorf("no node %d after %q: %w", i, node, fi.EINVAL)
		}
	}
	return a.insert(count, func(i int) (names.Name, error) {
		r := list[uint64(i)/services]
		port := uint64(r.name.Port) + uint64(i)%services
		if r.err == nil && port > 65535 {
			return names.Name{}, fmt.Errorf("port %d: %w", port, fi.EINVAL)
		}
		return r.name.WithPort(uint16(port)), r.err
	}, in)
}

// nodeRange returns the function that gives the i-th of n nodes, and false where
// the addresses end.
func nodeRange(node string, n uint64) (func(i uint64) (string, bool), error) {
	if a, err := netip.ParseAddr(node); err == nil {
		return func(i uint64) (string, bool) {
			a, ok := addToAddr(a, i)
			return a.String(), ok
		}, nil
	}
	if n == 1 {
		return func(uint64) (string, bool) { return node, true }, nil
	}
	stem := strings.TrimRight(node, "0123456789")
	digits := node[len(stem):]
	first, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || first+n < first {
		return nil, fmt.Errorf("node %q does not end with a number: %w", node, fi.EINVAL)
	}
	return func(i uint64) (string, bool) {
		// Leading zeros keep the width: node08, node09, node10.
		return fmt.Sprintf("%s%0*d", stem, len(digits), first+i), true
	}, nil
}

// addToAddr returns the i-th address after a, of the same family and scope.
func addToAddr(a netip.Addr, i uint64) (netip.Addr, bool) {
	b := a.AsSlice()
	for at := len(b) - 1; at >= 0 && i != 0; at-- {
		i += uint64(b[at])
		b[at] = byte(i)
		i >>= 8
	}
	next, _ := netip.AddrFromSlice(b)
	return next.WithZone(a.Zone()), i == 0
}
