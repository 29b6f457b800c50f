package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wanted are the modules that a machine loads, in this order, each after what
// it depends on. rdma_rxe looks crc32 up by name, so nothing names it as a
// dependency.
var wanted = []string{
	"virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_console",
	"crc32_generic", "crc32c_generic", "virtio_net", "dummy", "sch_netem", "rdma_rxe", "ib_uverbs", "rdma_ucm",
}

// image is what a machine boots.
type image struct{ kernel, initrd string }

// buildImage makes the image in dir unless it is there. The kernel is the one
// that Debian's linux-image package for amd64 stands for, fetched and unpacked
// but not installed.
func buildImage(dir, initProgram string) (image, error) {
	img := image{filepath.Join(dir, "vmlinux"), filepath.Join(dir, "initrd")}
	program, err := os.ReadFile(initProgram)
	if err != nil {
		return img, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return img, err
	}
	unpacked := filepath.Join(dir, "package")
	if _, err := os.Stat(unpacked); err != nil {
		if err := fetchKernel(dir, unpacked); err != nil {
			return img, err
		}
	}
	if _, err := os.Stat(img.kernel); err != nil {
		if err := unpackKernel(unpacked, img.kernel); err != nil {
			return img, err
		}
	}
	b, err := initrd(unpacked, program)
	if err != nil {
		return img, err
	}
	return img, os.WriteFile(img.initrd, b, 0o644)
}

// fetchKernel downloads the kernel's package and unpacks it.
func fetchKernel(dir, to string) error {
	out, err := exec.Command("apt-cache", "depends", "linux-image-amd64").Output()
	if err != nil {
		return fmt.Errorf("find the kernel's package: %w", err)
	}
	name := regexp.MustCompile(`linux-image-[0-9]\S+`).FindString(string(out))
	if name == "" {
		return errors.New("no package linux-image-amd64 in the package lists")
	}
	tmp, err := os.MkdirTemp(dir, "fetch.")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	cmd := exec.Command("apt-get", "-q", "download", name)
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("download %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	debs, _ := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if len(debs) != 1 {
		return fmt.Errorf("download %s: %d files", name, len(debs))
	}
	part := filepath.Join(tmp, "unpacked")
	if out, err := exec.Command("dpkg-deb", "-x", debs[0], part).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return os.Rename(part, to)
}

// unpackKernel takes the ELF kernel out of the compressed one, so that it is
// decompressed here once and not by an emulated processor at every start. The
// offsets are those of the x86 boot protocol 2.08 and later
// (Documentation/arch/x86/boot.rst in the kernel's source).
func unpackKernel(root, to string) error {
	files, _ := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if len(files) != 1 {
		return fmt.Errorf("%d kernels in the package", len(files))
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	if len(b) < 0x260 || string(b[0x202:0x206]) != "HdrS" {
		return fmt.Errorf("%s: no boot header", files[0])
	}
	sectors := int(b[0x1f1])
	if sectors == 0 {
		sectors = 4
	}
	at := (sectors+1)*512 + int(binary.LittleEndian.Uint32(b[0x248:]))
	end := at + int(binary.LittleEndian.Uint32(b[0x24c:]))
	if at < 0 || end > len(b) || at+8 > end {
		return fmt.Errorf("%s: payload out of range", files[0])
	}
	elf, err := decompress(b[at:end])
	if err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	if !bytes.HasPrefix(elf, []byte("\x7fELF")) {
		return fmt.Errorf("%s: the payload is no ELF file", files[0])
	}
	return os.WriteFile(to, elf, 0o644)
}

// decompress undoes the compressions that kernels and modules come in. What
// follows the compressed bytes is ignored.
func decompress(b []byte) ([]byte, error) {
	run := func(program string) ([]byte, error) {
		cmd := exec.Command(program, "-dcq")
		cmd.Stdin = bytes.NewReader(b)
		out, err := cmd.Output()
		if len(out) > 0 { // with trailing bytes both complain after the last good one
			return out, nil
		}
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	switch {
	case bytes.HasPrefix(b, []byte("\xfd7zXZ\x00")):
		return run("xz")
	case bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")):
		return run("zstd")
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		r.Multistream(false)
		var out bytes.Buffer
		_, err = out.ReadFrom(r)
		return out.Bytes(), err
	}
	return b, nil
}

// modules are the files of a kernel's modules by name.
func modules(root string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if name, _, ok := strings.Cut(d.Name(), ".ko"); err == nil && ok {
			found[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	return found, err
}

var dependsOn = regexp.MustCompile(`\x00depends=([^\x00]*)\x00`)

// initrd makes the first file system: init, the modules, and the list of them
// in the order of loading.
func initrd(root string, program []byte) ([]byte, error) {
	files, err := modules(root)
	if err != nil {
		return nil, err
	}
	var c cpio
	for _, d := range []string{"proc", "sys", "dev", "mod"} {
		c.add(d, 0o40755, nil)
	}
	c.add("init", 0o100755, program)
	var order []string
	var add func(name string) error
	add = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		if slices.Contains(order, name+".ko") {
			return nil
		}
		path, ok := files[name]
		if !ok {
			return nil // built into this kernel
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if b, err = decompress(b); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if m := dependsOn.FindSubmatch(b); m != nil {
			for _, dep := range strings.FieldsFunc(string(m[1]), func(r rune) bool { return r == ',' }) {
				if err := add(dep); err != nil {
					return err
				}
			}
		}
		order = append(order, name+".ko")
		c.add("mod/"+name+".ko", 0o100644, b)
		return nil
	}
	for _, name := range wanted {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	c.add("modules", 0o100644, []byte(strings.Join(order, "\n")+"\n"))
	c.add("TRAILER!!!", 0, nil)
	return c.out.Bytes(), nil
}

// cpio writes the "newc" archive that kernels unpack at start
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type cpio struct {
	out    bytes.Buffer
	number int
}

func (c *cpio) add(name string, mode int, data []byte) {
	c.number++
	fmt.Fprintf(&c.out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	c.out.WriteString(name)
	c.out.WriteByte(0)
	c.pad()
	c.out.Write(data)
	c.pad()
}

func (c *cpio) pad() { c.out.Write(make([]byte, -c.out.Len()&3)) }
