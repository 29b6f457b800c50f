package provider

// FI_WEFT_TOKEN_WAYS, for the elements of lists that go as operations of their own. Others may take every way.

// mayTake reports whether an operation may take a way.
func (e *attributes) mayTake(a *RMAArgs, w Way) bool {
	if !a.listed {
		return true
	}
	on := &e.domain.cfg.TokenWays
	return [...]bool{on.IPC, on.RDMA, on.Message}[w]
}

// deviceLeads reports whether an operation may go to a path by an RDMA device, as soon as its key is known.
func (e *attributes) deviceLeads(a *RMAArgs, p *path) bool {
	return e.mayTake(a, WayRDMA) && p.keys != nil && !e.orderedRMA() && !anyOnDevice(a.IOV)
}

// countListed counts an operation that was posted, if it is an element of a list.
func (e *statistics) countListed(a *RMAArgs, err error, w Way, n uint64) {
	if a.listed && err == nil {
		e.countWay(w, 1, n)
	}
}
