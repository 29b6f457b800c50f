package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// lookupTimeout bounds the resolution of a host name, for which no libfabric call
// takes a timeout.
const lookupTimeout = 30 * time.Second

// Resolver turns host and service names into addresses and ports. Tests give
// their own functions.
type Resolver struct {
	// Host returns the addresses of a host name, the best first.
	Host func(host string) ([]netip.Addr, error)
	// Service returns the port of a service name.
	Service func(service string) (uint16, error)
}

// SystemResolver asks the system: the hosts file, the name service and the
// services file.
var SystemResolver = Resolver{Host: systemHost, Service: systemService}

func systemHost(host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func systemService(service string) (uint16, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	var errs []error
	for _, network := range []string{"udp", "tcp"} {
		p, err := net.DefaultResolver.LookupPort(ctx, network, service)
		if err == nil {
			return uint16(p), nil
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}

// Resolve returns the names that a node and a service stand for, each
// optional, as fi_getinfo and fi_av_insertsvc take them: a numeric address or
// a host name, and a port number or a service name. An FI_ADDR_STR address as
// the node excludes a service.
//
// With numeric set (FI_NUMERICHOST) host names are not resolved. No node
// gives the wildcard of both families. The result is sorted, IPv4 first, and
// not empty. Errors wrap fi.ENODATA if something cannot be resolved and
// fi.EINVAL if the arguments contradict each other.
func (r Resolver) Resolve(node, service string, numeric bool) ([]Name, error) {
	if IsAddrStr(node) {
		if service != "" {
			return nil, fmt.Errorf("address %q with service %q: %w", node, service, fi.EINVAL)
		}
		n, err := Parse(node)
		if err != nil {
			return nil, err
		}
		return []Name{n}, nil
	}
	port, err := r.port(service)
	if err != nil {
		return nil, err
	}
	if node == "" {
		return []Name{Any(AFInet, port), Any(AFInet6, port)}, nil
	}
	if a, err := netip.ParseAddr(node); err == nil {
		if z := a.Zone(); z != "" && scopeOf(z) == 0 {
			return nil, fmt.Errorf("node %q: unknown scope: %w", node, fi.ENODATA)
		}
		return []Name{New(a, port)}, nil
	}
	if numeric {
		return nil, fmt.Errorf("node %q is not a numeric address: %w", node, fi.ENODATA)
	}
	return r.host(node, port)
}

// host resolves a host name.
func (r Resolver) host(node string, port uint16) ([]Name, error) {
	addrs, err := r.Host(node)
	if err != nil {
		return nil, fmt.Errorf("resolve node %q: %w: %w", node, err, fi.ENODATA)
	}
	var list []Name
	for _, a := range addrs {
		n := New(a.Unmap(), port)
		if !n.IsZero() && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("node %q has no address: %w", node, fi.ENODATA)
	}
	slices.SortStableFunc(list, func(a, b Name) int { return int(a.Family) - int(b.Family) })
	return list, nil
}

// port returns the port of a service, 0 for none.
func (r Resolver) port(service string) (uint16, error) {
	if service == "" {
		return 0, nil
	}
	p, err := strconv.ParseUint(service, 10, 16)
	if err == nil {
		return uint16(p), nil
	}
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("service %q is no port: %w", service, fi.ENODATA)
	}
	port, err := r.Service(service)
	if err != nil {
		return 0, fmt.Errorf("resolve service %q: %w: %w", service, err, fi.ENODATA)
	}
	return port, nil
}
