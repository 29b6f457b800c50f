package main

// #include <stdlib.h>
// #include "goapi.h"
// #include "host.h"
import "C"

import (
	"path"
	"runtime"
	"strings"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

// weftGoInit connects log and configuration to the host that called last, and completes the
// provider of the first. It is called once, before any other function.
//
//export weftGoInit
func weftGoInit(host *C.struct_weft_host) (rc C.int) {
	defer guard("fi_prov_ini", &rc)
	host.provider.version = C.uint32_t(info.ProvVersion)
	log.SetSink(writeLog)
	refreshLog()
	names := map[string]string{}
	for _, v := range config.Table() {
		names[v.Env()] = v.Name
	}
	sayName(C.GoString(host.reported))
	provider.SetConfigLookup(func(env string) (string, bool) { return lookupParam(names[env]) })
	return 0
}

// sayName says by which other name weft answers.
func sayName(name string) {
	if name != info.ProvName {
		log.Infof(log.Core, "weft %d.%d answers as %s (FI_WEFT_NAME)", fi.Major(info.ProvVersion),
			fi.Minor(info.ProvVersion), name)
	}
}

// weftGoSettle is called at the end of the process.
//
//export weftGoSettle
func weftGoSettle() {
	defer guardVoid("end of the process")
	provider.Settle()
}

// weftGoCleanup is called when the last host library ends, which is at the end of
// the process.
//
//export weftGoCleanup
func weftGoCleanup() {
	defer guardVoid("provider cleanup")
	provider.Shutdown()
	log.SetSink(nil) // the host's log is going away
}

// lookupParam returns the value of a variable as the host finds it: in the
// environment or, with later hosts, in a file.
func lookupParam(name string) (string, bool) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	value := C.weft_param_get(c)
	if value == nil {
		return "", false
	}
	return C.GoString(value), true
}

// refreshLog asks the host which messages it wants. The answer can change when
// the host has taken the provider in, so it is asked for again with each
// fi_getinfo; in between it is a bit in a word.
func refreshLog() {
	log.SetEnabled(func(l log.Level, s log.Subsys) bool {
		return C.weft_log_enabled(C.int(l), C.int(s)) != 0
	})
}

// writeLog hands a message to the host, with the place that wrote it.
func writeLog(l log.Level, s log.Subsys, msg string) {
	function, line := caller()
	f, m := C.CString(function), C.CString(msg)
	defer C.free(unsafe.Pointer(f))
	defer C.free(unsafe.Pointer(m))
	C.weft_log(C.int(l), C.int(s), f, C.int(line), m)
}

// caller returns the function outside package log that writes a message, and
// the line.
func caller() (string, int) {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "/internal/log.") || !more {
			return path.Base(f.Function), f.Line
		}
	}
}
