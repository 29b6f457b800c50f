package provider

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// TestHeads reads what this package sends as the data plane does: through the structures of package hot.
func TestHeads(t *testing.T) {
	var b [128]byte
	at := unsafe.Pointer(&b)

	rendezvous := wire.RTS{Request: 1, Length: 2, Data: 3, Flags: wire.FlagTagged | wire.FlagData, Count: 1,
		IOV: [wire.IOVLimit]hw.RemoteSegment{{Addr: 4, Len: 2}}}
	n := len(rendezvous.Put(b[:]))
	if got, want := *(*hot.RTSHead)(at),
		(hot.RTSHead{Request: 1, Length: 2, Data: 3, Flags: hot.RTSTagged | hot.RTSData, Count: 1, Addr: 4,
			Element: 2}); got != want ||
		n != int(unsafe.Sizeof(got)) {
		t.Errorf("rendezvous: %+v in %d bytes", got, n)
	}
	// As the data plane keeps one that comes before its receive (dataplane.UnexpectedRTSBytes): at the beginning of
	// what this package keeps.
	var kept wire.RTS
	*(*hot.RTSHead)(unsafe.Pointer(&kept)) = *(*hot.RTSHead)(at)
	if kept != rendezvous || unsafe.Sizeof(kept) != dataplane.UnexpectedRTSBytes {
		t.Errorf("kept: %+v", kept)
	}

	write := wire.Write{Key: 1, Request: 2, Flags: wire.WriteData | wire.WriteLast, Data: 3, Length: 4}
	n = len(write.Put(b[:]))
	if got, want := *(*hot.WriteHead)(at), (hot.WriteHead{Key: 1, Request: 2, Flags: hot.WriteData | hot.WriteLast,
		Data: 3, Length: 4}); got != want ||
		n != hot.WriteHeadDataBytes || n != int(unsafe.Sizeof(got)) {
		t.Errorf("write: %+v in %d bytes", got, n)
	}
	write = wire.Write{Key: 5, Request: 6, Flags: wire.WriteLast}
	n = len(write.Put(b[:]))
	if got := (*hot.WriteHead)(at); got.Key != 5 || got.Request != 6 || got.Flags != hot.WriteLast ||
		n != int(unsafe.Offsetof(got.Data)) || n != hot.WriteHeadBytes {
		t.Errorf("write without data: %+v in %d bytes", *got, n)
	}

	read := wire.Read{Key: 1, Request: 2, Length: 3, At: 4, Ends: wire.EndsOperation}
	n = len(read.Put(b[:]))
	if got, want := *(*hot.ReadHead)(at), (hot.ReadHead{Key: 1, Request: 2, Length: 3, At: 4, Ends: 1}); got != want ||
		n != int(unsafe.Sizeof(got)) {
		t.Errorf("read: %+v in %d bytes", got, n)
	}

	op := wire.Atomic{Key: 1, Request: 2, Op: fi.OpSum, Datatype: fi.Uint64, Kind: atomics.Fetch,
		Ends: wire.EndsOperation, Count: 3, At: 4}
	n = len(op.Put(b[:]))
	if got, want := *(*hot.AtomicHead)(at),
		(hot.AtomicHead{Key: 1, Request: 2, Op: uint8(fi.OpSum), Datatype: uint8(fi.Uint64), Kind: hot.AtomicFetch,
			Ends: 1, Count: 3, At: 4}); got != want ||
		n != int(unsafe.Sizeof(got)) {
		t.Errorf("atomic: %+v in %d bytes", got, n)
	}
}
