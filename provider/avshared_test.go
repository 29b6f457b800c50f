package provider

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// sharedConfig is a configuration whose files lie in dir.
func sharedConfig(dir string) *config.Config {
	cfg := *config.Default()
	cfg.SHMDir = dir
	cfg.AVSizeMax = 10_000
	cfg.ConnectTimeout = 5 * time.Second
	return &cfg
}

// sharedFiles lists the files of named address vectors in dir.
func sharedFiles(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "weft-av.*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAVSharedKeys: a shared address vector has no authorisation keys, whatever another opener has changed.
func TestAVSharedKeys(t *testing.T) {
	dir := t.TempDir()
	var avs [2]*AV
	for k := range avs {
		avs[k] = openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "x"})
	}
	at := insertAll(t, avs[0], testName(1))[0]
	_, err := avs[1].LookupAuthKey(at, nil)
	wantErrno(t, err, fi.EINVAL, "the key of an address without one")
}

// Two openers see each other's changes, each at once.
func TestAVSharedTwoOpeners(t *testing.T) {
	dir := t.TempDir()
	one := openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "x", Type: fi.AVTable})
	insertAll(t, one, testName(1), testName(2))
	two := openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "x", Type: fi.AVMap})
	other := openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "y"})
	if !one.Shared() || two.Limit() != 10_000 {
		t.Errorf("shared %v, limit %d", one.Shared(), two.Limit())
	}
	if got, ok := two.Name(1); !ok || got != testName(2) {
		t.Fatalf("the second opener sees %v %v", got, ok)
	}
	var notified []fi.Addr
	defer one.Subscribe(func(a fi.Addr) { notified = append(notified, a) })()
	generation := one.Generation()
	if at := insertAll(t, two, testName(3))[0]; at != 2 || one.Find(testName(3)) != at {
		t.Errorf("inserted at %d, found at %d", at, one.Find(testName(3)))
	}
	if one.Generation() == generation {
		t.Error("generation does not change with another's insertion")
	}
	wantErrno(t, two.Remove([]fi.Addr{0}, 0), fi.Success, "remove")
	if got := one.Find(testName(1)); got != fi.AddrNotAvail {
		t.Errorf("found at %d after another removed it", got)
	}
	// Between two polls an index gets another name.
	insertAll(t, two, testName(4))
	wantErrno(t, two.Remove([]fi.Addr{1}, 0), fi.Success, "remove")
	insertAll(t, two, testName(5))
	if got, _ := one.Name(0); got != testName(4) {
		t.Errorf("address 0 is %v", got)
	}
	if got, _ := one.Name(1); got != testName(5) || one.Find(testName(2)) != fi.AddrNotAvail {
		t.Errorf("address 1 is %v", got)
	}
	if !slices.Equal(notified, []fi.Addr{0, 1}) {
		t.Errorf("notified of %v", notified)
	}
	if at := insertAll(t, one, testName(6))[0]; at != 3 || two.Find(testName(6)) != 3 {
		t.Errorf("inserted at %d, found at %d", at, two.Find(testName(6)))
	}
	if _, ok := other.Name(0); ok {
		t.Error("address vectors of two names share")
	}
	// What comes later uses the lowest free index as well.
	wantErrno(t, two.Remove([]fi.Addr{0, 2}, 0), fi.Success, "remove")
	three := openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "x"})
	if at := insertAll(t, three, testName(7), testName(8), testName(9)); !slices.Equal(at, []fi.Addr{0, 2, 4}) {
		t.Errorf("inserted at %v", at)
	}
}

func TestAVSharedReadOnly(t *testing.T) {
	dir := t.TempDir()
	d := openTestDomainWith(t, testInfo(), sharedConfig(dir))
	read := fi.AVAttr{Name: "x", Flags: fi.Read}
	_, err := d.OpenAV(&read)
	wantErrno(t, err, fi.ENOENT, "read-only open of what is not there")
	if files := sharedFiles(t, dir); len(files) != 0 {
		t.Errorf("files %v", files)
	}
	owner := openTestAV(t, d, fi.AVAttr{Name: "x"})
	insertAll(t, owner, testName(1))
	reader := openTestAV(t, d, read)
	if got, ok := reader.Name(0); !ok || got != testName(1) {
		t.Errorf("reader sees %v %v", got, ok)
	}
	_, err = reader.Insert(rawNames(testName(2)), 1, &Insertion{})
	wantErrno(t, err, fi.EACCES, "insert")
	wantErrno(t, reader.Remove([]fi.Addr{0}, 0), fi.EACCES, "remove")
	insertAll(t, owner, testName(2))
	if reader.Find(testName(2)) != 1 {
		t.Error("reader misses a later insertion")
	}
}

// The last user removes the file, whatever it is.
func TestAVSharedLastCloses(t *testing.T) {
	dir := t.TempDir()
	d := openTestDomainWith(t, testInfo(), sharedConfig(dir))
	open := func() *AV {
		a, err := d.OpenAV(&fi.AVAttr{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	one, two := open(), open()
	insertAll(t, one, testName(1))
	wantErrno(t, one.Close(), fi.Success, "close")
	if two.Find(testName(1)) != 0 {
		t.Error("content is gone with the creator")
	}
	files := sharedFiles(t, dir)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
	wantErrno(t, two.Close(), fi.Success, "close")
	if files := sharedFiles(t, dir); len(files) != 0 {
		t.Errorf("files %v are left", files)
	}
	three := open()
	if _, ok := three.Name(0); ok {
		t.Error("old content is back")
	}
	wantErrno(t, three.Close(), fi.Success, "close")
}

// Opening and closing at the same time neither fails nor leaves anything.
func TestAVSharedOpenCloseConcurrently(t *testing.T) {
	dir := t.TempDir()
	d := openTestDomainWith(t, testInfo(), sharedConfig(dir))
	before := countFDs(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				a, err := d.OpenAV(&fi.AVAttr{Name: "x"})
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				n := testName(100*w + i)
				in := Insertion{Addrs: make([]fi.Addr, 1)}
				if c, err := a.Insert(rawNames(n), 1, &in); c != 1 || err != nil {
					t.Errorf("insert: %d %v", c, err)
				} else if got, ok := a.Name(in.Addrs[0]); !ok || got != n {
					t.Errorf("address %d is %v %v, want %v", in.Addrs[0], got, ok, n)
				} else if err := a.Remove(in.Addrs, 0); err != nil {
					t.Errorf("remove: %v", err)
				}
				if err := a.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if files := sharedFiles(t, dir); len(files) != 0 {
		t.Errorf("files %v are left", files)
	}
	if after := countFDs(t); after != before {
		t.Errorf("%d descriptors, before %d", after, before)
	}
}

func countFDs(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// What cannot be trusted is refused, and stays as it is.
func TestAVSharedForeignFiles(t *testing.T) {
	dir := t.TempDir()
	d := openTestDomainWith(t, testInfo(), sharedConfig(dir))
	openTestAV(t, d, fi.AVAttr{Name: "probe"})
	path := sharedFiles(t, dir)[0]
	name := fi.AVAttr{Name: "probe"}
	type foreign struct {
		what    string
		prepare func() error
		want    fi.Errno
	}
	list := []foreign{
		{"open to others", func() error { return os.Chmod(path, 0o644) }, fi.EACCES},
		{"symbolic link", func() error {
			return moveAside(path, func() error { return os.Symlink("/etc/passwd", path) })
		}, fi.EACCES},
		{"fifo", func() error {
			return moveAside(path, func() error { return unix.Mkfifo(path, 0o600) })
		}, fi.EACCES},
	}
	if os.Geteuid() == 0 { // only root can make a file another user's
		list = append(list, foreign{"another user's", func() error {
			return moveAside(path, func() error {
				return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 1, 1))
			})
		}, fi.EACCES})
	}
	for _, c := range list {
		if err := c.prepare(); err != nil {
			t.Fatal(err)
		}
		_, err := d.OpenAV(&name)
		wantErrno(t, err, c.want, c.what)
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		restore(t, path)
	}
}

// moveAside puts something else in a file's place.
func moveAside(path string, put func() error) error {
	if err := os.Rename(path, path+"~"); err != nil {
		return err
	}
	return put()
}

func restore(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path + "~"); err == nil {
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that users hold open with a header that does not fit is refused after
// the time for its initialisation; one that nothing uses is initialised.
func TestAVSharedBadHeader(t *testing.T) {
	dir := t.TempDir()
	cfg := sharedConfig(dir)
	cfg.ConnectTimeout = 20 * time.Millisecond
	d := openTestDomainWith(t, testInfo(), cfg)
	for _, c := range []struct {
		what string
		at   int64
		b    []byte
	}{
		{"magic", 0, []byte{0xff}},
		{"version", 8, []byte{9}},
		{"entry size", 12, []byte{64}},
		{"capacity", 16, []byte{1, 0, 0, 0, 0, 0, 0, 1}},
		{"no capacity", 16, make([]byte, 8)},
	} {
		a, err := d.OpenAV(&fi.AVAttr{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		insertAll(t, a, testName(1))
		path := sharedFiles(t, dir)[0]
		overwrite(t, path, c.b, c.at)
		_, err = d.OpenAV(&fi.AVAttr{Name: "x"})
		wantErrno(t, err, fi.EINVAL, c.what)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wantErrno(t, a.Close(), fi.Success, "close")
		if err := os.WriteFile(path, content[:len(content)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := d.OpenAV(&fi.AVAttr{Name: "x"})
		if err != nil {
			t.Fatalf("%s: open what nothing uses: %v", c.what, err)
		}
		if _, ok := b.Name(0); ok {
			t.Errorf("%s: old content is back", c.what)
		}
		wantErrno(t, b.Close(), fi.Success, "close")
	}
}

// overwrite changes bytes of a file that others have open.
func overwrite(t testing.TB, path string, b []byte, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// A process that holds the lock and does not give it back delays, but not for
// ever.
func TestAVSharedLockTimeout(t *testing.T) {
	dir := t.TempDir()
	cfg := sharedConfig(dir)
	cfg.ConnectTimeout = 10 * time.Millisecond
	one := openTestAV(t, openTestDomainWith(t, testInfo(), cfg), fi.AVAttr{Name: "x"})
	two := openTestAV(t, openTestDomainWith(t, testInfo(), cfg), fi.AVAttr{Name: "x"})
	insertAll(t, one, testName(1))
	begun, end, ended := make(chan bool), make(chan bool), make(chan error)
	one.Subscribe(func(fi.Addr) { // is called under the lock
		close(begun)
		<-end
	})
	go func() { ended <- one.Remove([]fi.Addr{0}, 0) }()
	<-begun
	_, err := two.Insert(rawNames(testName(2)), 1, &Insertion{})
	wantErrno(t, err, fi.ETIMEDOUT, "insert while another changes")
	if _, ok := two.Name(0); ok {
		t.Error("the change is seen before it is complete")
	}
	close(end)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if at := insertAll(t, two, testName(2))[0]; at != 0 {
		t.Errorf("inserted at %d", at)
	}
}

// ---- other processes ----

const childVariable = "WEFT_TEST_AV_CHILD" // what to do : directory : number
