//go:build direct

package main

// #include <stdlib.h>
// #include <rdma/providers/fi_log.h>
// #include <rdma/providers/fi_prov.h>
// #include "direct.h"
import "C"

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
)

// Variables of the environment, as libweft.so has them: fi_provider(3).

// variable is one that was declared.
type variable struct {
	help string
	typ  C.int // enum fi_param_type
}

// variableTable has the variables that were declared.
type variableTable struct {
	mu    sync.Mutex // guards all below; taken when objects are opened, not on the data path
	names []string   // in the order of their declaration
	of    map[string]variable
}

var variables = variableTable{of: map[string]variable{}}

// variableName is the name in the environment. A provider's is empty for the library's own.
func variableName(provider, name string) string {
	if provider != "" {
		name = provider + "_" + name
	}
	return "FI_" + strings.ToUpper(name)
}

// declare enters a variable. One that is declared again gets the later type and help.
func (t *variableTable) declare(provider, name, help string, typ C.int) {
	if provider != "" {
		help = provider + ": " + help
	}
	name = variableName(provider, name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.of[name]; !ok {
		t.names = append(t.names, name)
	}
	t.of[name] = variable{help, typ}
}

// get returns what is known of a variable, and its value in the environment as it is now, nil if it is not set: the
// application may have changed that since Go started. The value lives until the variable is set again. fi.ENOENT for a
// variable that was not declared.
func (t *variableTable) get(name string) (variable, *C.char, error) {
	t.mu.Lock()
	v, ok := t.of[name]
	t.mu.Unlock()
	if !ok {
		return v, nil, fi.ENOENT
	}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return v, C.getenv(c), nil
}

// declareOwn declares the library's variables and weft's, before any is asked for. It returns the name that fi_getinfo
// reports: that of FI_WEFT_NAME, or weft's own for what is no name, which fails fi_getinfo with the rest of the
// configuration.
var declareOwn = sync.OnceValue(func() string {
	for _, v := range []struct {
		name, help string
		typ        C.int
	}{
		{"log_level", "Log level: warn, trace, info or debug (default: no log)", C.FI_PARAM_STRING},
		{"log_prov", "Providers to log, or after ^ those not to log (default: all)", C.FI_PARAM_STRING},
		{"log_subsys", "Subsystems to log, or after ^ those not to log (default: all)", C.FI_PARAM_STRING},
		{"log_interval", "Milliseconds between two rate limited log lines (default: 2000)", C.FI_PARAM_INT},
	} {
		variables.declare("", v.name, v.help, v.typ)
	}
	for _, v := range config.Table() {
		variables.declare(info.ProvName, v.Name, v.Text(), C.FI_PARAM_STRING)
	}
	_, value, _ := variables.get(variableName(info.ProvName, "name"))
	name := info.ReportedName(&config.Config{Name: text(value)})
	C.weft_direct_host.reported = C.CString(name)
	return name
})

// Provider is NULL for the library's own variables.
//
//export weftGoParamDefine
func weftGoParamDefine(provider, name *C.char, typ C.int, help *C.char) (rc C.int) {
	defer guard("fi_param_define", &rc)
	declareOwn()
	variables.declare(text(provider), text(name), text(help), typ)
	return 0
}

// A string that is stored is the environment's own.
//
//export weftGoParamGet
func weftGoParamGet(provider, name *C.char, value unsafe.Pointer) (rc C.int) {
	defer guard("fi_param_get", &rc)
	declareOwn()
	v, s, err := variables.get(variableName(text(provider), text(name)))
	switch {
	case err != nil:
	case s == nil:
		err = fi.ENODATA
	default:
		err = store(value, s, v.typ)
	}
	return result(err)
}

// store stores a value of a type, fi.EINVAL if the text is none.
func store(to unsafe.Pointer, s *C.char, typ C.int) (err error) {
	switch typ {
	case C.FI_PARAM_STRING:
		*(**C.char)(to) = s
	case C.FI_PARAM_INT:
		var n C.int
		if n, err = intOf(s); err == nil {
			*(*C.int)(to) = n
		}
	case C.FI_PARAM_BOOL:
		no := listed("0,no,off,false", text(s))
		if !no && !listed("1,yes,on,true", text(s)) {
			return fi.EINVAL
		}
		*(*C.int)(to) = 1
		if no {
			*(*C.int)(to) = 0
		}
	case C.FI_PARAM_SIZE_T:
		var n C.size_t
		if n, err = sizeOf(s); err == nil {
			*(*C.size_t)(to) = n
		}
	default:
		err = fi.EINVAL
	}
	return err
}

// intOf reads a number as strtol(3) has it.
func intOf(s *C.char) (C.int, error) {
	var end *C.char
	n, err := C.strtol(s, &end, 0)
	if err != nil || end == s || *end != 0 || n > math.MaxInt32 || n < math.MinInt32 {
		return 0, fi.EINVAL
	}
	return C.int(n), nil
}

// sizeOf reads a number of bytes, which may end with k, m or g.
func sizeOf(s *C.char) (C.size_t, error) {
	if *s < '0' || *s > '9' {
		return 0, fi.EINVAL
	}
	var end *C.char
	n, err := C.strtoull(s, &end, 0)
	power := map[string]int{"": 0, "k": 10, "m": 20, "g": 30}
	shift, ok := power[strings.ToLower(C.GoString(end))]
	if err != nil || !ok || uint64(n) > math.MaxUint64>>shift {
		return 0, fi.EINVAL
	}
	return C.size_t(n) << shift, nil
}

// The list ends with an element without a name.
//
//export weftGoParams
func weftGoParams(params **C.struct_fi_param, number *C.int) (rc C.int) {
	defer guard("fi_getparams", &rc)
	declareOwn()
	variables.mu.Lock()
	names := slices.Clone(variables.names)
	variables.mu.Unlock()
	list := (*C.struct_fi_param)(C.calloc(C.size_t(len(names)+1), C.sizeof_struct_fi_param))
	if list == nil {
		return result(fi.ENOMEM)
	}
	for i, p := range unsafe.Slice(list, len(names)) {
		v, s, err := variables.get(names[i])
		if err != nil {
			break // none is taken back
		}
		p.name, p.help_string, p._type = C.CString(names[i]), C.CString(v.help), C.enum_fi_param_type(v.typ)
		if s != nil {
			p.value = C.strdup(s)
		}
		unsafe.Slice(list, len(names))[i] = p
	}
	*params, *number = list, C.int(len(names))
	return 0
}

// listed reports whether a word is an element of a list that is separated by commas or, as layers are, by semicolons;
// case does not matter.
func listed(list, word string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' }),
		func(s string) bool { return strings.EqualFold(s, word) })
}

// chosen reports whether a list such as "a,b" or "^a,b" admits a word; without a list all are.
func chosen(list *string, word string) bool {
	if list == nil {
		return true
	}
	if not, ok := strings.CutPrefix(*list, "^"); ok {
		return !listed(not, word)
	}
	return listed(*list, word)
}

// logSettings says which lines are written. Immutable.
type logSettings struct {
	limit     int     // the highest level, -1: none
	subsys    uint32  // a bit for each subsystem
	providers *string // a list for chosen
	interval  C.int   // ms between two lines of one place
}

// logging reads the settings once.
var logging = sync.OnceValue(func() logSettings {
	declareOwn()
	value := func(name string) *string {
		if _, s, _ := variables.get(variableName("", name)); s != nil {
			own := C.GoString(s)
			return &own
		}
		return nil
	}
	s := logSettings{limit: -1, interval: 2000, providers: value("log_prov")}
	if level := value("log_level"); level != nil {
		s.limit = int(log.Warn) // a word that is no level's means this
		for l := log.Warn; l <= log.Debug; l++ {
			if strings.EqualFold(l.String(), *level) {
				s.limit = int(l)
			}
		}
	}
	subsystems := value("log_subsys")
	for i := log.Core; i <= log.Cntr; i++ {
		if chosen(subsystems, i.String()) {
			s.subsys |= 1 << i
		}
	}
	if _, ms, _ := variables.get(variableName("", "log_interval")); ms != nil {
		if n, err := intOf(ms); err == nil && n >= 0 {
			s.interval = n
		}
	}
	return s
})

// The ms between two lines of one place of a provider, -1: lines of that level and subsystem are not written.
//
//export weftGoLogInterval
func weftGoLogInterval(provider *C.char, level, subsys C.int) (ms C.int64_t) {
	defer guard("fi_log_enabled", &ms)
	s := logging()
	if level < 0 || int(level) > s.limit || subsys < 0 || subsys > C.int(log.Cntr) || s.subsys>>subsys&1 == 0 ||
		!chosen(s.providers, text(provider)) {
		return -1
	}
	return C.int64_t(s.interval)
}
