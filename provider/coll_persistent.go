package provider

import "slices"

// AllToAllVRequest is an all-to-all of parts that is begun again and again, made by
// [Endpoint.AllToAllVInit].
type AllToAllVRequest struct {
	ep   *Endpoint
	args AllToAllVArgs
}

// AllToAllVInit prepares an all-to-all that [AllToAllVRequest.Start] begins any number of
// times. The arrays are the caller's again when it returns; the buffers belong to each
// operation from its start to its completion. Nothing is sent. Errors are those of
// [Endpoint.AllToAllV] but fi.EAGAIN.
func (e *Endpoint) AllToAllVInit(a *AllToAllVArgs) (*AllToAllVRequest, error) {
	if err := e.checkVector(a); err != nil {
		return nil, err
	}
	c := e.coll
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.joined(a.Group)
	if err != nil {
		return nil, err
	}
	if _, err := c.layOut(g, a); err != nil {
		return nil, err
	}
	r := &AllToAllVRequest{ep: e, args: *a}
	for _, list := range []*[]uint64{&r.args.Counts, &r.args.Displs, &r.args.ResultCounts, &r.args.ResultDispls} {
		*list = slices.Clone(*list)
	}
	return r, nil
}

// Start begins the operation; every member of the group does so in the same order as its
// other operations. One that is under way is not to be started again. Errors are those of
// [Endpoint.AllToAllV].
func (r *AllToAllVRequest) Start() error { return r.ep.AllToAllV(&r.args) }
