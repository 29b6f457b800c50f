package loopback

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSurvey reads a live segment, one whose process was killed, and files
// that are none; and removes what is dead.
func TestSurvey(t *testing.T) {
	dir := shmDir(t)
	live := start(t, "hold", dir, nil, nil)
	live.line(t)
	dead := start(t, "hold", dir, nil, nil)
	dead.line(t)
	dead.cmd.Process.Kill()
	dead.cmd.Wait()
	if err := os.WriteFile(filepath.Join(dir, "weft.7.7.x"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := Survey(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[SegmentState]SegmentInfo{}
	for _, s := range list {
		seen[s.State] = s
	}
	if len(list) != 3 || len(seen) != 3 {
		t.Fatalf("%+v", list)
	}
	if s := seen[SegmentLive]; s.PID != uint32(live.cmd.Process.Pid) || s.Name == "" || s.Bytes == 0 {
		t.Errorf("%+v", s)
	}
	if s := seen[SegmentDead]; s.PID != uint32(dead.cmd.Process.Pid) {
		t.Errorf("%+v", s)
	}
	for state, want := range map[SegmentState]bool{SegmentLive: false, SegmentDead: true, SegmentUnknown: false} {
		if ok, err := RemoveDead(seen[state].Path); ok != want || err != nil {
			t.Errorf("remove a %s segment: %v, %v", state, ok, err)
		}
	}
	if list, err := Survey(dir); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := Survey(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there")
	}
	os.Remove(filepath.Join(dir, "weft.7.7.x"))
	live.cmd.Process.Kill()
	live.cmd.Wait()
	if ok, err := RemoveDead(seen[SegmentLive].Path); !ok || err != nil {
		t.Errorf("remove the other segment: %v, %v", ok, err)
	}
}
