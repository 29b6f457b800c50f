package loopback

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestForeignFiles has Connect meet files that are not what they should be.
func TestForeignFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: the files of other users are not tested")
	}
	for _, c := range []struct {
		name   string
		root   bool
		damage func(path string, fd int) error
		want   error
	}{
		{"other user", true, func(_ string, fd int) error { return unix.Fchown(fd, 65534, -1) }, hw.ErrPermission},
		{"group readable", false, func(_ string, fd int) error { return unix.Fchmod(fd, 0o640) }, hw.ErrPermission},
		{"other writable", false, func(_ string, fd int) error { return unix.Fchmod(fd, 0o602) }, hw.ErrPermission},
		{"symbolic link", false, func(path string, _ int) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		}, hw.ErrPermission},
		{"pipe", false, func(path string, _ int) error {
			return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600))
		}, hw.ErrPermission},
		{"directory", false, func(path string, _ int) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, unix.EISDIR},
		{"empty", false, func(_ string, fd int) error { return unix.Ftruncate(fd, 0) }, hw.ErrInvalid},
		{"short header", false, func(_ string, fd int) error { return unix.Ftruncate(fd, 100) }, hw.ErrInvalid},
		{"truncated", false, func(_ string, fd int) error { return unix.Ftruncate(fd, 8192) }, hw.ErrInvalid},
		{"longer", false, func(_ string, fd int) error { return unix.Ftruncate(fd, 1<<30) }, hw.ErrInvalid},
		{"other magic", false, writeWord(0, 1), hw.ErrInvalid},
		{"other version", false, writeWord(8, 99), hw.ErrInvalid},
		{"dead process", false, writeWord(12, 1<<22+1), hw.ErrUnreachable},
		{"other boot", false, writeWord(32, 1), hw.ErrUnreachable},
		{
			"other pid namespace, no lock", false,
			writeWord(int64(unsafe.Offsetof(hot.Segment{}.Flags)), 0, 48, 1), hw.ErrUnreachable,
		},
		{"other pid namespace, lock not taken", false, writeWord(48, 1, 64, 1), hw.ErrUnreachable},
		{"other net namespace", false, writeWord(56, 1), hw.ErrUnreachable},
		{"other start time", false, writeWord(64, 1), hw.ErrUnreachable},
		{"other user inside", false, writeWord(72, 77), hw.ErrPermission},
		{"other name", false, writeWord(82, 1), hw.ErrUnreachable},
		{"gone", false, writeWord(192, hot.RxGone), hw.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Getuid() != 0 {
				t.Skip("needs root to give a file away")
			}
			dir := shmDir(t)
			i, other := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
			path := other.seg.path
			fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			t.Cleanup(func() { os.Remove(path); os.Remove(path + ".real") })
			if err := c.damage(path, fd); err != nil {
				t.Fatal(err)
			}
			if _, err := i.Connect(other.Address()); !errors.Is(err, c.want) {
				t.Errorf("connect: %v, want %v", err, c.want)
			}
			switch c.name { // mapped memory is not there any more: do not touch it
			case "empty", "short header", "truncated":
				unix.Ftruncate(fd, int64(other.seg.geo.bytes))
			}
		})
	}
}

// writeWord overwrites four bytes of the header, and others: an offset and a value each.
func writeWord(offset int64, value uint32, more ...int64) func(string, int) error {
	return func(_ string, fd int) error {
		_, err := unix.Pwrite(fd, binary.LittleEndian.AppendUint32(nil, value), offset)
		for n := 0; n < len(more); n += 2 {
			_, err2 := unix.Pwrite(fd, binary.LittleEndian.AppendUint32(nil, uint32(more[n+1])), more[n])
			err = errors.Join(err, err2)
		}
		return err
	}
}

func TestNameInUse(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir})
	if _, err := Open(i.Address(), Config{Dir: dir}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("second interface of one name: %v", err)
	}
	i.Close()
	again, err := Open(i.Address(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestStaleName opens an interface whose name a dead process has left.
func TestStaleName(t *testing.T) {
	dir := shmDir(t)
	c := start(t, "hold", dir, nil, nil)
	c.line(t)
	if _, err := Open(c.addr, Config{Dir: dir}); !errors.Is(err, unix.EADDRINUSE) {
		t.Fatalf("the name of a live process: %v", err)
	}
	c.kill()
	i, err := Open(c.addr, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	i.Close()
}

// TestStaleIsSwept opens one interface and finds the files of dead ones removed,
// of other versions too, but nothing that is alive, or of others.
func TestStaleIsSwept(t *testing.T) {
	dir := shmDir(t)
	keep := open(t, Config{Dir: dir})
	c, old := start(t, "hold", dir, nil, nil), start(t, "hold", dir, nil, nil)
	c.line(t)
	old.line(t)
	a, err := parseSockaddr(old.addr)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(filepath.Join(dir, fileName(keep.host.user, keep.host.netns, &a)), unix.O_RDWR|unix.O_CLOEXEC,
		0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := writeWord(int64(unsafe.Offsetof(hot.Segment{}.Version)), hot.SegVersion+1)("", fd); err != nil {
		t.Fatal(err)
	}
	unknown := filepath.Join(dir, filePrefix(uint32(os.Geteuid()))+"1.future")
	if err := os.WriteFile(unknown, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(unknown)
	c.kill()
	old.kill()
	if n := segments(t, dir); n != 4 {
		t.Fatalf("%d files before", n)
	}
	sweeps.Lock()
	delete(sweeps.next, dir)
	sweeps.Unlock()
	open(t, Config{Dir: dir})
	if n := segments(t, dir); n != 3 { // keep, unknown and the new one
		t.Errorf("%d files after", n)
	}
	for _, path := range []string{keep.seg.path, unknown} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestRemoveKeepsSuccessor has the remover of a stale file come late, when its
// name leads to another file.
func TestRemoveKeepsSuccessor(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir})
	old, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(old)
	if !removeFile(old, i.seg.path, flockPatience) {
		t.Error("the old file counts as still there")
	}
	if _, err := os.Lstat(i.seg.path); err != nil {
		t.Errorf("the successor: %v", err)
	}
}

// TestFullFileSystem opens interfaces in a memory file system that is too
// small for them.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("weft-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	first, err := Open(testAddress(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for range 3 {
		_, err = Open(testAddress(), Config{Dir: dir})
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), dir) {
			t.Errorf("second interface: %v", err)
		}
	}
	if n := segments(t, dir); n != 1 {
		t.Errorf("%d files", n)
	}
	first.Close()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Bfree != st.Blocks {
		t.Errorf("%d of %d blocks free after close, %v", st.Bfree, st.Blocks, err)
	}
}

// TestNamedTemporary covers file systems that have no nameless files.
func TestNamedTemporary(t *testing.T) {
	dir := shmDir(t)
	fd, temp, err := createTemporary(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if st, err := os.Stat(temp); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if err := writeZeros(fd, 100_000); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(temp); err != nil || st.Size() != 100_000 {
		t.Errorf("%v, %v", st, err)
	}
	os.Remove(temp)
}

func TestOpenErrors(t *testing.T) {
	for name, c := range map[string]Config{
		"ring":       {RingLog2: MaxRingLog2 + 1},
		"attach":     {AttachCount: MaxAttach + 1},
		"no buffers": {BounceCount: 3, Stripes: 4},
		"many":       {BounceCount: MaxBounceCount + 1},
		"big":        {BounceBytes: MaxBounceBytes + 1},
		"negative":   {Stripes: -1},
	} {
		if _, err := Open(testAddress(), c); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open([]byte("nonsense"), Config{}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("address: %v", err)
	}
	if _, err := Open(testAddress(), Config{Dir: "/nonexistent"}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("directory: %v", err)
	}
}

// TestLargest opens the largest geometry, without its memory.
func TestLargest(t *testing.T) {
	c := Config{RingLog2: MaxRingLog2, AttachCount: MaxAttach, BounceCount: MaxBounceCount, BounceBytes: MaxBounceBytes,
		Stripes: 1}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	g := newGeometry(&c)
	if err := g.check(g.bytes); err != nil {
		t.Errorf("%+v: %v", g, err)
	}
}
