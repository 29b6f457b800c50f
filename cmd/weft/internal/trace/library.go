package trace

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// role is what a call is for following operations (enum weft_trace_role).
type role uint8

const (
	call    role = iota
	post         // starts an operation
	read         // ends operations
	readErr      // ends an operation that failed
)

// point is one of libfabric's calls in a library (struct weft_trace_point).
type point struct {
	name      string
	operation string // that it posts
	offset    uint64 // of the function in the file
	role      role
	noStatus  bool // it returns a value, never an error

	// Of a post: the number of the argument that is the context, from 1; or, if
	// 0, where the context is in the second argument's structure.
	contextArg, contextOffset uint8
}

// library is a file with weft in it, and what its table (cabi/trace.h) says.
// The file may be any user's: nothing in it is believed before it is checked.
type library struct {
	path   string // by which this process reaches it
	mapped string // as the traced process calls it
	points []point

	cqHot, hotFormat uint16 // see struct weft_trace_table
}

// The layout of cabi/trace.h, version 1.
const (
	tableSymbol  = "weft_trace"
	tableVersion = 1
	tableHead    = 16
	pointBytes   = 56
	maxPoints    = 1024
	maxOps       = 64 // kinds of operations
)

var errNoTable = errors.New("no table of calls")

// findLibrary searches the files that a process has mapped for weft's
// library.
func findLibrary(pid int) (*library, error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return nil, fmt.Errorf("what the process has mapped: %w", err)
	}
	seen := map[string]bool{}
	gone := ""
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		// address perms offset device inode path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		mapped := strings.Join(fields[5:], " ")
		if seen[mapped] {
			continue
		}
		seen[mapped] = true
		path := filepath.Join(dir, "root", mapped)
		if !sameFile(path, fields[4]) {
			if strings.Contains(filepath.Base(mapped), "weft") {
				gone = mapped
			}
			continue
		}
		lib, err := readLibrary(path)
		if errors.Is(err, errNoTable) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", mapped, err)
		}
		lib.mapped = mapped
		return lib, nil
	}
	if gone != "" {
		return nil, fmt.Errorf("process %d runs %s, which has been replaced since: restart the process to trace it",
			pid, gone)
	}
	return nil, fmt.Errorf(
		"process %d has not loaded a weft library that can be traced (libweft-core.so, libweft.so); "+
			"Go programs that import weft have no functions to trace", pid)
}

// sameFile reports whether a path leads to the inode that is mapped.
func sameFile(path, inode string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && fmt.Sprint(st.Ino) == inode
}

// image is an ELF file as it is before it is loaded, with the relocations that
// need no symbol.
type image struct {
	file  *elf.File
	moved map[uint64]uint64 // by address: the value put there
}

// readLibrary reads a file's table. errNoTable: it is no library of weft's.
func readLibrary(path string) (*library, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, errNoTable // not an ELF file
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, errNoTable // no dynamic symbols
	}
	at := uint64(0)
	for _, s := range symbols {
		if s.Name == tableSymbol && s.Section != elf.SHN_UNDEF {
			at = s.Value
		}
	}
	if at == 0 {
		return nil, errNoTable
	}
	im := &image{f, nil}
	if im.moved, err = relocations(f); err != nil {
		return nil, err
	}
	lib, err := im.table(at)
	if err != nil {
		return nil, fmt.Errorf("table of calls: %w", err)
	}
	lib.path = path
	return lib, nil
}

// relocations returns what the loader adds the load address to.
func relocations(f *elf.File) (map[uint64]uint64, error) {
	relative := uint32(elf.R_X86_64_RELATIVE)
	if f.Machine == elf.EM_AARCH64 {
		relative = uint32(elf.R_AARCH64_RELATIVE)
	}
	moved := map[uint64]uint64{}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		b, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("relocations: %w", err)
		}
		for ; len(b) >= 24; b = b[24:] {
			if uint32(binary.LittleEndian.Uint64(b[8:])) == relative {
				moved[binary.LittleEndian.Uint64(b)] = binary.LittleEndian.Uint64(b[16:])
			}
		}
	}
	return moved, nil
}

// bytes returns the file's content at an address.
func (im *image) bytes(at, n uint64) ([]byte, error) {
	for _, p := range im.file.Progs {
		if p.Type == elf.PT_LOAD && at >= p.Vaddr && at-p.Vaddr <= p.Filesz && n <= p.Filesz-(at-p.Vaddr) {
			b := make([]byte, n)
			if _, err := p.ReadAt(b, int64(at-p.Vaddr)); err != nil {
				return nil, fmt.Errorf("read at %#x: %w", at, err)
			}
			return b, nil
		}
	}
	return nil, fmt.Errorf("%#x is not in the file", at)
}

// pointer returns the address that is at an address.
func (im *image) pointer(at uint64) (uint64, error) {
	if v, ok := im.moved[at]; ok {
		return v, nil
	}
	b, err := im.bytes(at, 8) // relocated in place, or none
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// fileOffset returns where code is in the file.
func (im *image) fileOffset(at uint64) (uint64, error) {
	for _, p := range im.file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && at >= p.Vaddr && at-p.Vaddr < p.Filesz {
			return at - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("%#x is not code", at)
}

func (im *image) table(at uint64) (*library, error) {
	head, err := im.bytes(at, tableHead)
	if err != nil {
		return nil, err
	}
	version, count, size := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]),
		binary.LittleEndian.Uint32(head[8:])
	if version != tableVersion {
		return nil, fmt.Errorf("version %d; this command reads version %d", version, tableVersion)
	}
	if count == 0 || count > maxPoints || size < pointBytes || size > 4096 {
		return nil, fmt.Errorf("%d calls of %d bytes", count, size)
	}
	lib := &library{cqHot: binary.LittleEndian.Uint16(head[12:]), hotFormat: binary.LittleEndian.Uint16(head[14:])}
	seen := map[uint64]bool{}
	for i := range uint64(count) {
		p, err := im.point(at + tableHead + i*uint64(size))
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
		if !seen[p.offset] { // one function for several calls: it is known by the first
			seen[p.offset] = true
			lib.points = append(lib.points, p)
		}
	}
	return lib, nil
}

func (im *image) point(at uint64) (point, error) {
	b, err := im.bytes(at, pointBytes)
	if err != nil {
		return point{}, err
	}
	p := point{
		name: cString(b[:24]), operation: cString(b[24:40]), role: role(b[50]),
		contextArg: b[51], contextOffset: b[52], noStatus: b[53] != 0,
	}
	if p.name == "" || p.role > readErr || p.contextArg > 32 || (p.role == post) != (p.operation != "") {
		return point{}, fmt.Errorf("%q of kind %d with its context in argument %d makes no sense", p.name, p.role,
			p.contextArg)
	}
	table, err := im.pointer(at + 40)
	if err != nil {
		return point{}, err
	}
	function, err := im.pointer(table + uint64(binary.LittleEndian.Uint16(b[48:])))
	if err != nil {
		return point{}, fmt.Errorf("%s: %w", p.name, err)
	}
	if p.offset, err = im.fileOffset(function); err != nil {
		return point{}, fmt.Errorf("%s: %w", p.name, err)
	}
	return p, nil
}

// cString returns the text before the first zero; empty if it is not plain.
func cString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	for _, c := range b {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return string(b)
}
