# SPDX-License-Identifier: BSD-2-Clause
#
# make run    see weft work          make test   run every test
# make build  libraries into build/  make help   the other targets

GO      ?= go
CC      ?= gcc
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION  = 0.1.0
SONAME   = libweft.so.0
# A libfabric other than the system's for make bench: a folder with include and lib.
LIBFABRIC ?=

LIB   = build/lib
BIN   = build/bin
BENCH = build/bench

# A Go library is never unloaded, so the loader must not try. Preemption by
# signal is off: the application's threads would get SIGURG.
GO_LDFLAGS = -X runtime.godebugDefault=asyncpreemptoff=1
LINK_FI = -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,-soname,libweft-fi.so -Wl,--version-script=$(CURDIR)/cabi/weft-fi.map
LINK    = -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,-soname,$(SONAME) -Wl,--version-script=$(CURDIR)/cabi/weft.map

WARN = -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread
ifneq ($(LIBFABRIC),)
FABRIC_FLAGS = -I$(LIBFABRIC)/include -L$(LIBFABRIC)/lib
endif

.PHONY: help deps build lib bin bench-program run test lint bench man fuzz \
	install uninstall clean

help:
	@sed -n 's/^## //p' Makefile

## make deps       install the packages that are missing (Debian, Ubuntu)
deps:
	@scripts/deps.sh

## make build      build/lib/libweft-fi.so, build/lib/libweft.so, build/bin/
build: lib bin

lib:
	@mkdir -p $(LIB)
	$(GO) build -buildmode=c-shared -ldflags "$(GO_LDFLAGS) -extldflags '$(LINK_FI)'" \
		-o $(LIB)/libweft-fi.so ./cabi
	$(GO) build -buildmode=c-shared -tags direct -ldflags "$(GO_LDFLAGS) -extldflags '$(LINK)'" \
		-o $(LIB)/libweft.so ./cabi
	@rm -f $(LIB)/*.h
	@ln -sf libweft.so $(LIB)/$(SONAME)

bin:
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/ ./cmd/...

bench-program:
	@mkdir -p $(BENCH)
	$(CC) $(WARN) -O2 -o $(BENCH)/weft_bench tests/bench/*.c $(FABRIC_FLAGS) -lfabric -lm

## make run        install what is missing, build, and show weft at work
run: deps
	@scripts/run.sh

## make test       install what is missing, build, and run every test
test: deps
	@scripts/test.sh

## make lint       formatting, vet, staticcheck, shellcheck, C warnings, layers
lint:
	@scripts/lint.sh full

## make bench      measure weft beside other providers into docs/benchmarks.md
bench: build bench-program
	$(BIN)/weft-bench -libfabric "$(LIBFABRIC)" -netpipe -out docs/benchmarks.md

## make man        docs/fi_weft.7 from docs/fi_weft.7.in and the configuration table
man:
	$(GO) run ./internal/config/manpage docs/fi_weft.7.in > build/fi_weft.7
	mv build/fi_weft.7 docs/fi_weft.7

## make fuzz       every fuzz test for a few seconds
fuzz:
	@scripts/fuzz.sh

## make install    libraries, headers, weft.pc, manual page (PREFIX, DESTDIR)
install: lib
	install -d $(DESTDIR)$(PREFIX)/lib/libfabric $(DESTDIR)$(PREFIX)/lib/pkgconfig \
		$(DESTDIR)$(PREFIX)/include/weft $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 755 $(LIB)/libweft-fi.so $(DESTDIR)$(PREFIX)/lib/libfabric/libweft-fi.so
	install -m 755 $(LIB)/libweft.so $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libweft.so
	install -m 644 include/weft/*.h $(DESTDIR)$(PREFIX)/include/weft/
	install -m 644 docs/fi_weft.7 $(DESTDIR)$(PREFIX)/share/man/man7/fi_weft.7
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' weft.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/weft.pc
	chmod 644 $(DESTDIR)$(PREFIX)/lib/pkgconfig/weft.pc

## make uninstall  remove what make install put in place
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/lib/libfabric/libweft-fi.so $(DESTDIR)$(PREFIX)/lib/$(SONAME) \
		$(DESTDIR)$(PREFIX)/lib/libweft.so $(DESTDIR)$(PREFIX)/lib/pkgconfig/weft.pc \
		$(DESTDIR)$(PREFIX)/share/man/man7/fi_weft.7
	rm -f $(patsubst include/%,$(DESTDIR)$(PREFIX)/include/%,$(wildcard include/weft/*.h))
	-rmdir $(DESTDIR)$(PREFIX)/include/weft $(DESTDIR)$(PREFIX)/lib/libfabric 2>/dev/null

## make clean      remove build/
clean:
	rm -rf build
