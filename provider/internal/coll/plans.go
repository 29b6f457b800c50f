package coll

import "github.com/weft-fabric/weft/provider/collective"

// plans are those of a group's calls, which are kept for the next ones. Under Groups.mu.
type plans struct {
	algorithm string // FI_WEFT_ALLTOALL_ALGORITHM; immutable
	of        map[collective.Call]*collective.Plan
}

// maxPlans is how many plans a group keeps.
const maxPlans = 32

// get returns the plan of a call, from before or anew.
func (p *plans) get(call *collective.Call) *collective.Plan {
	plan := p.of[*call]
	if plan == nil {
		if len(p.of) >= maxPlans {
			clear(p.of)
		}
		plan = p.build(call)
		p.of[*call] = plan
	}
	return plan
}

// fixedOrders are the values of FI_WEFT_ALLTOALL_ALGORITHM that are plans' algorithms.
var fixedOrders = map[string]collective.Algorithm{
	"bruck": collective.BruckAllToAll, "pairwise": collective.PairwiseAllToAll, "step": collective.StepAllToAll,
	"linear": collective.LinearAllToAll,
}

// build makes the plan of a call, of an all-to-all by the algorithm that is set.
func (p *plans) build(call *collective.Call) *collective.Plan {
	if a, set := fixedOrders[p.algorithm]; set && call.Kind == collective.AllToAll {
		return collective.BuildWith(call, a)
	}
	return collective.Build(call)
}
