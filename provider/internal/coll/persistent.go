package coll

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
)

// AllToAllVRequest is an all-to-all of parts that is begun again and again, made by
// provider.Endpoint.AllToAllVInit. Where chunks are put or got the members' right to the buffers is registered at the
// first start, and stays so until [AllToAllVRequest.Free], an operation that fails, or the endpoint's end.
type AllToAllVRequest struct {
	c    *Groups
	args AllToAllVArgs
}

// AllToAllVInit prepares an all-to-all that [AllToAllVRequest.Start] begins any number of times, as
// provider.Endpoint.AllToAllVInit says.
func (c *Groups) AllToAllVInit(a *AllToAllVArgs) (*AllToAllVRequest, error) {
	if err := c.checkVector(a); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.joined(a.Group)
	if err != nil {
		return nil, err
	}
	if _, err := c.layOut(g, a); err != nil {
		return nil, err
	}
	r := &AllToAllVRequest{c: c, args: *a}
	r.args.kept = &keptMemory{}
	c.persistent[r.args.kept] = struct{}{}
	for _, list := range []*[]uint64{&r.args.Counts, &r.args.Displs, &r.args.ResultCounts, &r.args.ResultDispls} {
		*list = slices.Clone(*list)
	}
	return r, nil
}

// Start begins the operation; every member of the group does so in the same order as its
// other operations. One that is under way is not to be started again. Errors are those of
// provider.Endpoint.AllToAllV, and fi.EINVAL for a request that was freed.
func (r *AllToAllVRequest) Start() error {
	c := r.c
	c.mu.Lock()
	freed := r.args.kept.freed
	c.mu.Unlock()
	if freed {
		return log.Reject(log.EPData, fi.EINVAL, "alltoallv: the request was freed")
	}
	return c.AllToAllV(&r.args)
}

// Free ends the request: members have no right to its buffers when it returns, or if it is under way, when it has
// completed. To free it again, or after the endpoint was closed, does nothing.
func (r *AllToAllVRequest) Free() {
	c, k := r.c, r.args.kept
	c.mu.Lock()
	idle := !k.freed && !k.used
	k.freed = true
	delete(c.persistent, k)
	c.mu.Unlock()
	if idle {
		k.close()
	}
}
