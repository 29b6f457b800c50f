//go:build direct

package main

// #include <stdlib.h>
// #include <string.h>
// #include "direct.h"
// #include "goapi.h"
//
// static inline bool describes_itself(const struct fid *fid)
// {
//	return fid->ops && FI_CHECK_OP(fid->ops, struct fi_ops, tostr);
// }
// static inline void describe(const struct fid *fid, char *buf, size_t len)
// {
//	fid->ops->tostr(fid, buf, len);
//	buf[len - 1] = 0;
// }
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// resourceMgmt stands for an enum fi_type, which the resource management of a domain has not.
const resourceMgmt = -1

// shownEnum has the names of values.
type shownEnum struct {
	specific bool // values with FI_PROV_SPECIFIC are a provider's own
	names    map[uint32]string
}

// shownFlag is a bit.
type shownFlag struct {
	bit  uint64
	name string
}

// shownBits has the names of bits, in the order in which they are shown.
type shownBits struct {
	bytes uintptr // of a value of the type
	flags []shownFlag
}

// shownAttr is an attribute with its members.
type shownAttr struct {
	name    string
	members []shownMember
}

// howShown is how a member is shown; tostr.txt has the words.
type howShown int

const (
	howNumber howShown = iota
	howContexts
	howHex
	howString
	howPointer
	howVersion
	howOrder
	howEnum
	howFlags
	howAttr
	howAddress
	howFid
)

// shownMember is a member of an attribute.
type shownMember struct {
	name     string
	at, size uintptr
	how      howShown
	typ      C.int   // of enumerations, flags and attributes
	digits   int     // of hexadecimal numbers, at least
	length   uintptr // of addresses: where their length is
}

// toStr is a text that is being written; what is beyond room bytes is cut.
type toStr struct {
	strings.Builder
	room int
}

// The text of data, cut to size - 1 bytes and terminated.
//
//export weftGoToStr
func weftGoToStr(buf *C.char, size C.size_t, data unsafe.Pointer, typ C.int) {
	defer guardVoid("fi_tostr")
	t := &toStr{room: int(min(size, 1<<20)) - 1}
	switch {
	case typ == C.FI_TYPE_VERSION:
		fmt.Fprintf(t, "%d.%d.0", fi.Major(C.WEFT_API), fi.Minor(C.WEFT_API))
	case data == nil:
		t.WriteString("(null)")
	case typ >= 0 && typ == C.FI_TYPE_FID:
		t.fid((*C.struct_fid)(data))
	case typ < 0 || !t.flags(data, 0, typ) && !t.attr("", data, typ) && !t.enum(data, typ):
		t.WriteString("Unknown type")
	}
	out := view[byte](unsafe.Pointer(buf), C.size_t(t.room)+1)
	out[copy(out[:t.room], t.String())] = 0
}

func (t *toStr) enum(data unsafe.Pointer, typ C.int) bool {
	e, ok := shownEnums[typ]
	if !ok {
		return false
	}
	value := *(*uint32)(data)
	name, known := e.names[value]
	switch {
	case e.specific && value&C.FI_PROV_SPECIFIC != 0:
		name = "Provider specific"
	case !known:
		name = "Unknown"
	}
	t.WriteString(name)
	return true
}

// number reads an unsigned number of 4 or 8 bytes.
func number(at unsafe.Pointer, size uintptr) uint64 {
	if size == 4 {
		return uint64(*(*uint32)(at))
	}
	return *(*uint64)(at)
}

// flags adds the names of the bits that are set, in the table's order. A size of 0 is the type's.
func (t *toStr) flags(data unsafe.Pointer, size uintptr, typ C.int) bool {
	bits, ok := shownFlags[typ]
	if !ok {
		return false
	}
	if size == 0 {
		size = bits.bytes
	}
	value := number(data, size)
	var set []string
	for _, f := range bits.flags {
		if value&f.bit != 0 {
			set = append(set, f.name)
		}
	}
	t.WriteString(strings.Join(set, ", "))
	return true
}

func (t *toStr) order(order uint64) {
	switch strict := order & C.FI_ORDER_STRICT; strict {
	case 0:
		t.WriteString("FI_ORDER_NONE")
	case C.FI_ORDER_STRICT:
		t.WriteString("FI_ORDER_STRICT")
	default:
		t.flags(unsafe.Pointer(&strict), unsafe.Sizeof(strict), C.FI_TYPE_MSG_ORDER)
	}
	if order&C.FI_ORDER_DATA != 0 {
		t.WriteString(", FI_ORDER_DATA")
	}
}

func (t *toStr) pointer(indent, name string, value unsafe.Pointer) {
	if value == nil {
		fmt.Fprintf(t, "%s%s: (nil)\n", indent, name)
	} else {
		fmt.Fprintf(t, "%s%s: %#x\n", indent, name, uintptr(value))
	}
}

// fid lets the object describe itself when it can.
func (t *toStr) fid(fid *C.struct_fid) {
	if !C.describes_itself(fid) {
		t.pointer("", "fid", unsafe.Pointer(fid))
		return
	}
	room := max(t.room-t.Len(), 0) + 1
	buf := (*C.char)(C.calloc(1, C.size_t(room)))
	if buf == nil {
		return
	}
	defer C.free(unsafe.Pointer(buf))
	C.describe(fid, buf, C.size_t(room))
	t.WriteString(C.GoString(buf))
}

// address shows a transport address in the form of FI_ADDR_STR, or its bytes where only another provider can read it.
// Of socket addresses the family says it; those that are not of the internet stay empty.
func (t *toStr) address(format C.uint32_t, addr []byte) {
	switch format {
	case C.FI_SOCKADDR, C.FI_SOCKADDR_IN, C.FI_SOCKADDR_IN6:
		if n, err := names.FromSockaddr(addr); err == nil {
			n.Scope = 0
			t.WriteString(n.String())
		}
	case C.FI_ADDR_STR:
		text, _, _ := strings.Cut(string(addr), "\x00")
		t.WriteString(text)
	default:
		fmt.Fprintf(t, "%x", addr)
	}
}

// value adds what stands behind the name of a member that has one line.
func (t *toStr) value(m *shownMember, of, at unsafe.Pointer) {
	value := number(at, m.size)
	switch m.how {
	case howHex:
		fmt.Fprintf(t, "0x%0*x", m.digits, value)
	case howVersion:
		fmt.Fprintf(t, "%d.%d", fi.Major(uint32(value)), fi.Minor(uint32(value)))
	case howString:
		if s := *(**C.char)(at); s != nil {
			t.WriteString(C.GoString(s))
		} else {
			t.WriteString("(null)")
		}
	case howOrder:
		t.WriteString("[ ")
		t.order(value)
		t.WriteString(" ]")
	case howEnum:
		t.enum(at, m.typ)
	case howFlags:
		t.WriteString("[ ")
		t.flags(at, m.size, m.typ)
		t.WriteString(" ]")
	case howAddress:
		if addr := *(*unsafe.Pointer)(at); addr != nil {
			t.address((*C.struct_fi_info)(of).addr_format, view[byte](addr, *(*C.size_t)(unsafe.Add(of, m.length))))
		} else {
			t.WriteString("(null)")
		}
	default:
		if m.how == howContexts && value == C.FI_SHARED_CONTEXT {
			t.WriteString("FI_SHARED_CONTEXT")
		} else {
			fmt.Fprint(t, value)
		}
	}
}

func (t *toStr) member(indent string, m *shownMember, of unsafe.Pointer) {
	at := unsafe.Add(of, m.at)
	switch m.how {
	case howAttr:
		t.attr(indent, *(*unsafe.Pointer)(at), m.typ)
	case howFid, howPointer:
		if fid := *(**C.struct_fid)(at); m.how == howFid && fid != nil {
			t.fid(fid)
		} else {
			t.pointer(indent, m.name, unsafe.Pointer(fid))
		}
	default:
		t.WriteString(indent + m.name + ": ")
		t.value(m, of, at)
		t.WriteString("\n")
	}
}

func (t *toStr) attr(indent string, data unsafe.Pointer, typ C.int) bool {
	a, ok := shownAttrs[typ]
	switch {
	case !ok:
		return false
	case data == nil:
		t.WriteString(indent + a.name + ": (null)\n")
	default:
		t.WriteString(indent + a.name + ":\n")
		for i := range a.members {
			t.member(indent+"    ", &a.members[i], data)
		}
	}
	return true
}
