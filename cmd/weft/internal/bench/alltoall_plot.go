package bench

import (
	"strings"

	"gonum.org/v1/plot"
)

// allToAllPlots are those of the networks' rows, for each length that most of them have.
var allToAllPlots = []drawing{allToAllPlot(bothSlices[0]), allToAllPlot(bothSlices[1])}

// allToAllPlot draws how long each order takes on each network with slices of a length.
func allToAllPlot(slice int64) drawing {
	size := sizeText(slice)
	return drawing{"alltoall-networks-" + size + ".svg", "all to all, slices of " + size + ", in units of the bound",
		func(res *result, found *figures) []panel { return allToAllPanels(res, found, slice) }}
}

// allToAllPanels has a panel for each provider, with a curve for each order.
func allToAllPanels(res *result, found *figures, slice int64) (list []panel) {
	providers := exchanged(res, found)
	ways := measuredWays(found, providers...)
	for _, p := range providers {
		pn := panel{title: strings.Join([]string{p, "slices of " + sizeText(slice)}, ", "), categories: true}
		if len(list) == 0 {
			pn.y = "time of the last rank / bound"
		}
		for _, way := range ways {
			pn.curves = append(pn.curves, curve{provider: way.title})
		}
		for i := range labNetworks {
			pn.network(found, p, &labNetworks[i], slice, ways)
		}
		if len(pn.ticks) != 0 {
			list = append(list, pn)
		}
	}
	return list
}

// network adds a network, if it has figures: the orders stand side by side.
func (pn *panel) network(found *figures, provider string, w *labNetwork, slice int64, ways []allToAllWay) {
	const apart = 0.1
	at, measured := float64(len(pn.ticks)+1), false
	for i, way := range ways {
		s := found.of(provider, allToAllFigure(w, slice, way.name, "bounds"))
		if s.count == 0 || s.low <= 0 || w.hosts == 0 {
			continue
		}
		c := &pn.curves[i]
		c.x, c.y = append(c.x, at+apart*(float64(i)-float64(len(ways)-1)/2)), append(c.y, s)
		measured = true
	}
	if measured {
		pn.ticks = append(pn.ticks, plot.Tick{Value: at, Label: w.name})
	}
}
