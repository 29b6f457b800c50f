package info

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// TestProgressModels goes through every pair of hints under every setting.
func TestProgressModels(t *testing.T) {
	const u, a, m, c = fi.ProgressUnspec, fi.ProgressAuto, fi.ProgressManual, fi.ProgressControlUnified
	for _, tc := range []struct {
		thread                config.Tri
		control, data         fi.Progress
		wantControl, wantData fi.Progress
		refused               bool
	}{
		{config.Auto, u, u, m, m, false},
		{config.Auto, m, m, m, m, false},
		{config.Auto, a, a, a, a, false},
		{config.Auto, u, a, a, a, false},
		{config.Auto, a, u, a, m, false},
		{config.Auto, a, m, a, m, false},
		{config.Auto, m, a, m, a, false},
		{config.Auto, u, m, m, m, false},
		{config.Auto, m, u, m, m, false},
		{config.Auto, u, c, m, c, false},
		{config.Auto, c, c, c, c, false},
		{config.Yes, u, u, a, a, false},
		{config.Yes, m, m, m, m, false},
		{config.Yes, u, m, m, m, false},
		{config.Yes, a, u, a, m, false},
		{config.No, u, u, m, m, false},
		{config.No, a, u, u, u, true},
		{config.No, u, a, u, u, true},
	} {
		cfg := config.Default()
		cfg.ProgressThread = tc.thread
		h := newHints(func(h *fi.Info) { h.Domain.ControlProgress, h.Domain.DataProgress = tc.control, tc.data })
		infos, err := testEnv().GetInfo(fi.Version(2, 0), "", "", 0, h, cfg)
		if tc.refused {
			if err == nil {
				t.Errorf("%+v: not refused", tc)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tc, err)
			continue
		}
		if d := infos[0].Domain; d.ControlProgress != tc.wantControl || d.DataProgress != tc.wantData {
			t.Errorf("%+v: control %d, data %d", tc, d.ControlProgress, d.DataProgress)
		}
	}
}
