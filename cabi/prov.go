package main

// #include <stdlib.h>
// #include "goapi.h"
// #include "host.h"
// #include "poster.h"
// static inline int define_param(char *name, char *help)
// {
//	return weft_host.param_define(&weft_self, name, FI_PARAM_STRING, "%s", help);
// }
// static inline int get_param(char *name, char **value)
// {
//	return weft_host.param_get(&weft_self, name, value);
// }
import "C"

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/info"
)

// weftGoInit connects log and configuration to the host. It is called once,
// before any other function.
//
//export weftGoInit
func weftGoInit() (rc C.int) {
	defer guard("fi_prov_ini", &rc)
	C.weft_provider.version = C.uint32_t(info.ProvVersion)
	log.SetSink(writeLog)
	refreshLog()
	names := map[string]string{}
	for _, v := range config.Table() {
		names[v.Env()] = v.Name
		if err := define(&v); err != nil {
			return result(err)
		}
	}
	setName()
	hot.SetPosters(unsafe.Slice((*hot.Poster)(unsafe.Pointer(&C.weft_posters[0])), C.WEFT_POSTERS))
	info.SetHost(uint32(C.weft_host_version()))
	provider.SetConfigLookup(func(env string) (string, bool) { return lookupParam(names[env]) })
	return 0
}

// setName gives the provider the name of FI_WEFT_NAME. A bad value leaves weft's own,
// and fails fi_getinfo with the rest of the configuration.
func setName() {
	value, _ := lookupParam("name")
	top, lower := info.Registered(value)
	if top == info.ProvName {
		return
	}
	C.weft_provider.name = C.CString(top) // for as long as the process lives
	C.weft_reported_name = C.weft_provider.name
	if lower != "" {
		C.weft_reported_name = C.CString(lower + ";" + top)
	}
	log.Infof(log.Core, "weft %d.%d answers as %s (FI_WEFT_NAME)",
		fi.Major(info.ProvVersion), fi.Minor(info.ProvVersion), C.GoString(C.weft_reported_name))
}

// weftGoSettle is called at the end of the process.
//
//export weftGoSettle
func weftGoSettle() {
	defer guardVoid("end of the process")
	provider.Settle()
}

// weftGoCleanup is called when the host library ends, usually at the end of
// the process.
//
//export weftGoCleanup
func weftGoCleanup() {
	defer guardVoid("provider cleanup")
	provider.Shutdown()
	log.SetSink(nil) // the host's log is going away
}

// define registers a variable with the host, so that "fi_info -e" lists it.
//
// All are registered as strings: the host turns a number that it cannot parse
// into 0 without a word, while weft must name what is wrong. So the type stands
// in the help text.
func define(v *config.Var) error {
	kind := v.Kind.String()
	if v.Unit != "" {
		kind += ", " + v.Unit
	}
	name := C.CString(v.Name)
	defer C.free(unsafe.Pointer(name))
	help := C.CString(fmt.Sprintf("%s (%s; default: %s; range: %s)", v.Help, kind, orEmpty(v.Default), v.Range))
	defer C.free(unsafe.Pointer(help))
	if rc := C.define_param(name, help); rc != 0 {
		return fmt.Errorf("register %s: %w", v.Env(), fi.Errno(-rc))
	}
	return nil
}

func orEmpty(s string) string {
	if s == "" {
		return "empty"
	}
	return s
}

// lookupParam returns the value of a variable as the host finds it: in the
// environment or, with later hosts, in a file.
func lookupParam(name string) (string, bool) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	var value *C.char
	if C.get_param(c, &value) != 0 || value == nil {
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
