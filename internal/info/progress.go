package info

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// checkProgress checks the hints for the progress models. Automatic progress
// needs a thread, which the configuration may forbid.
func (q *query) checkProgress(h fi.DomainAttr) *refusal {
	models := []fi.Progress{fi.ProgressUnspec, fi.ProgressManual, fi.ProgressControlUnified}
	if q.cfg.ProgressThread != config.No {
		models = append(models, fi.ProgressAuto)
	}
	return firstRefusal(
		oneOf("domain_attr.control_progress", h.ControlProgress, models...),
		oneOf("domain_attr.data_progress", h.DataProgress, models...),
	)
}

// progress returns the models of control and data progress for the hints.
//
// What is not asked for is manual, unless the configuration says that there are
// threads anyway. One thread serves both kinds, so automatic data progress
// brings automatic control progress with it where that is left open; the
// converse is the hybrid: control operations and the copies of large messages
// in the background, all else by the caller.
func (q *query) progress(h fi.DomainAttr) (control, data fi.Progress) {
	def := fi.ProgressManual
	if q.cfg.ProgressThread == config.Yes {
		def = fi.ProgressAuto
	}
	control, data = h.ControlProgress, h.DataProgress
	switch {
	case data == fi.ProgressUnspec && control == fi.ProgressUnspec:
		return def, def
	case control == fi.ProgressUnspec && data == fi.ProgressAuto:
		control = fi.ProgressAuto
	case control == fi.ProgressUnspec:
		control = fi.ProgressManual
	case data == fi.ProgressUnspec:
		data = fi.ProgressManual
	}
	return control, data
}
