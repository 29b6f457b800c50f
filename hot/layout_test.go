package hot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// mirrors lists every Go type of this package with its C twin.
var mirrors = []struct {
	ctype  string
	gotype reflect.Type
}{
	{"weft_ring", reflect.TypeFor[Ring]()},
	{"weft_cqe", reflect.TypeFor[CQE]()},
	{"weft_cq_error", reflect.TypeFor[CQError]()},
	{"weft_hot_cq", reflect.TypeFor[CQ]()},
	{"weft_cq_ring", reflect.TypeFor[CQRing]()},
	{"weft_hot_cntr", reflect.TypeFor[Cntr]()},
	{"weft_recv_entry", reflect.TypeFor[RecvEntry]()},
	{"weft_hot_rx", reflect.TypeFor[Rx]()},
	{"weft_hot_peer", reflect.TypeFor[Peer]()},
	{"weft_hot_source", reflect.TypeFor[Source]()},
	{"weft_hot_port_source", reflect.TypeFor[PortSource]()},
	{"weft_rts_head", reflect.TypeFor[RTSHead]()},
	{"weft_write_head", reflect.TypeFor[WriteHead]()},
	{"weft_atomic_head", reflect.TypeFor[AtomicHead]()},
	{"weft_reader", reflect.TypeFor[Reader]()},
	{"weft_delivery", reflect.TypeFor[Delivery]()},
	{"weft_poster", reflect.TypeFor[Poster]()},
	{"weft_hot_stripe", reflect.TypeFor[Stripe]()},
	{"weft_hot_region", reflect.TypeFor[Region]()},
	{"weft_hot_fetch", reflect.TypeFor[Fetch]()},
	{"weft_port_message", reflect.TypeFor[PortMessage]()},
	{"weft_hot_port", reflect.TypeFor[Port]()},
	{"weft_hot_path", reflect.TypeFor[Path]()},
	{"weft_inbound", reflect.TypeFor[Inbound]()},
	{"weft_hot_ep", reflect.TypeFor[EP]()},
	{"weft_segment", reflect.TypeFor[Segment]()},
	{"weft_lane", reflect.TypeFor[Lane]()},
	{"weft_slot", reflect.TypeFor[Slot]()},
	{"weft_bounce_ref", reflect.TypeFor[BounceRef]()},
	{"weft_attach", reflect.TypeFor[Attach]()},
	{"weft_bounce", reflect.TypeFor[Bounce]()},
	{"weft_key", reflect.TypeFor[Key]()},
	{"weft_claim", reflect.TypeFor[Claim]()},
}

// constants pairs every constant that both languages define.
var constants = []struct {
	c     string
	value uint64
}{
	{"WEFT_SLOT_FREE", SlotFree}, {"WEFT_SLOT_TAKEN", SlotTaken}, {"WEFT_SLOT_READY", SlotReady},
	{"WEFT_SEQ_OWNER_SHIFT", SeqOwnerShift}, {"WEFT_SEQ_OWNER_MASK", SeqOwnerMask},
	{"WEFT_SEQ_LAP_SHIFT", SeqLapShift}, {"WEFT_CACHE_LINE", CacheLine},
	{"WEFT_CQE_ERROR", CQEError},
	{"WEFT_CQ_EXCLUSIVE", CQExclusive}, {"WEFT_CQ_WAITABLE", CQWaitable}, {"WEFT_CNTR_TRIGGERS", CntrTriggers}, {"WEFT_CNTR_BYTES", CntrBytes},
	{"WEFT_RECV_TAGGED", RecvTagged}, {"WEFT_RECV_IOV", RecvIOV}, {"WEFT_RECV_CANCEL", RecvCancel}, {"WEFT_RECV_WORK", RecvWork},
	{"WEFT_RECV_DEVICE", RecvDevice},
	{"WEFT_EXCLUSIVE", RxExclusive}, {"WEFT_EP_MATCHES", EPMatches}, {"WEFT_EP_RX_SELECTIVE", EPRxSelective},
	{"WEFT_POLLED_ENOUGH", PolledEnough}, {"WEFT_STARVED_MS", StarvedMillis}, {"WEFT_BELL_AWAKE", BellAwake}, {"WEFT_BELL_ASLEEP", BellAsleep},
	{"WEFT_EP_EXCLUSIVE", EPExclusive}, {"WEFT_EP_TX_ALWAYS", EPTxAlways}, {"WEFT_EP_FAST", EPFast},
	{"WEFT_EP_CTX_SHIFT", EPCtxShift},
	{"WEFT_RX_OPEN", RxOpen}, {"WEFT_RX_WAITABLE", RxWaitable}, {"WEFT_RX_GONE", RxGone},
	{"WEFT_AM_MSG", AMMsg}, {"WEFT_AM_MSG_DATA", AMMsgData}, {"WEFT_AM_TAG", AMTag},
	{"WEFT_AM_TAG_DATA", AMTagData}, {"WEFT_AM_RTS", AMRTS}, {"WEFT_AM_ACK", AMAck},
	{"WEFT_AM_WRITE", AMWrite}, {"WEFT_AM_ATOMIC", AMAtomic}, {"WEFT_AM_READ_DATA", AMReadData},
	{"WEFT_RTS_TAGGED", RTSTagged}, {"WEFT_RTS_DATA", RTSData},
	{"WEFT_DELIVERY_DONE", DeliveryDone}, {"WEFT_DELIVERY_GO", DeliveryGo}, {"WEFT_DELIVERY_ONE_SIDED", DeliveryOneSided},
	{"WEFT_DELIVERY_ACK", DeliveryAck}, {"WEFT_DELIVERY_READ", DeliveryRead}, {"WEFT_DELIVERY_SETTLE", DeliverySettle},
	{"WEFT_DELIVERY_COMPLETE", DeliveryComplete}, {"WEFT_TODO_WAKE_CQ", TodoWakeCQ}, {"WEFT_TODO_WAKE_CNTR", TodoWakeCntr},
	{"WEFT_TODO_TRIGGERED", TodoTriggered}, {"WEFT_MESSAGE_TAGGED", MessageTagged}, {"WEFT_MESSAGE_DATA", MessageData},
	{"WEFT_FETCH_ID", FetchID}, {"WEFT_COPY_MIN_WRITE", CopyMinWrite}, {"WEFT_LEND_AHEAD", LendAhead}, {"WEFT_HEAT_MIN", HeatMin},
	{"WEFT_ATTENTION_GO", AttentionGo}, {"WEFT_ATTENTION_PORTS", AttentionPorts},
	{"WEFT_PORT_EMPTY", PortEmpty}, {"WEFT_PORT_ARRIVAL", PortArrival}, {"WEFT_PORT_GO", PortGo},
	{"WEFT_PATH_SENT", PathSent}, {"WEFT_PATH_FULL", PathFull}, {"WEFT_PATH_GO", PathGo},
	{"WEFT_PATH_HELD", PathHeld}, {"WEFT_HOLD_NEVER", HoldNever}, {"WEFT_HOLD_IN_ROW", HoldInRow}, {"WEFT_HOLD_MORE", HoldMore},
	{"WEFT_SEG_MAGIC", SegMagic}, {"WEFT_SEG_VERSION", SegVersion},
	{"WEFT_SEG_ANY_IPV4", SegAnyIPv4}, {"WEFT_SEG_ANY_IPV6", SegAnyIPv6},
	{"WEFT_SEG_LOCKED", SegLocked}, {"WEFT_SEG_ACROSS", SegAcross},
	{"WEFT_LANES", Lanes}, {"WEFT_SLOT_BYTES", SlotBytes}, {"WEFT_SLOT_BODY", SlotBody}, {"WEFT_SLOT_BOUNCE", SlotBounce},
	{"WEFT_KEY_READ", KeyRead}, {"WEFT_KEY_WRITE", KeyWrite}, {"WEFT_KEY_PROBES", KeyProbes}, {"WEFT_CLAIMS", Claims},
	{"WEFT_ATTACH_FREE", AttachFree}, {"WEFT_ATTACH_CLAIMED", AttachClaimed},
	{"WEFT_ATTACH_READY", AttachReady}, {"WEFT_ATTACH_LEAVING", AttachLeaving},
}

// snakes are the Go spellings whose words snake case alone does not find.
var snakes = map[string]string{
	"AMID": "am_id", "CQ": "cq", "EP": "ep", "EPs": "eps", "NRings": "nrings", "PIDNamespace": "pid_namespace",
	"OLen": "olen", "PeerLimit": "peer_limit", "TxCQ": "tx_cq", "TxCntr": "tx_cntr", "RxCQ": "rx_cq",
	"ID": "id", "BootID": "boot_id", "RingLog2": "ring_log2", "Log2Slots": "log2_slots", "PID": "pid", "UID": "uid",
}

func snake(name string) string {
	if s, ok := snakes[name]; ok {
		return s
	}
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestLayout compares every size, offset, field size and constant with what a
// C compiler says.
func TestLayout(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc: the C side of the layout cannot be asked")
	}
	var want strings.Builder
	var c strings.Builder
	c.WriteString("#include <stdio.h>\n#include \"weft/hot.h\"\n#include \"weft/message.h\"\n#include \"weft/delivery.h\"\nint main(void)\n{\n")
	for _, m := range mirrors {
		fmt.Fprintf(&c, "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", m.ctype, m.ctype)
		fmt.Fprintf(&want, "%s %d\n", m.ctype, m.gotype.Size())
		for i := range m.gotype.NumField() {
			f := m.gotype.Field(i)
			if f.Name == "_" {
				continue
			}
			name := snake(f.Name)
			fmt.Fprintf(&c, "printf(\"%s.%s %%zu %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n",
				m.ctype, name, m.ctype, name, m.ctype, name)
			fmt.Fprintf(&want, "%s.%s %d %d\n", m.ctype, name, f.Offset, f.Type.Size())
		}
	}
	for _, k := range constants {
		fmt.Fprintf(&c, "printf(\"%s %%llu\\n\", (unsigned long long)%s);\n", k.c, k.c)
		fmt.Fprintf(&want, "%s %d\n", k.c, k.value)
	}
	c.WriteString("return 0;\n}\n")

	dir := t.TempDir()
	src, bin := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(src, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-std=c11", "-I../include", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(string(out), "\n"), strings.Split(want.String(), "\n")
	for i := range wantLines {
		if i >= len(gotLines) || gotLines[i] != wantLines[i] {
			t.Errorf("C says %q, Go says %q", gotLines[i], wantLines[i])
		}
	}
}

var (
	structLine = regexp.MustCompile(`^struct (\w+) \{`)
	fieldName  = regexp.MustCompile(`(\w+)(\[[^\]]*\])?;`)
	fillerName = regexp.MustCompile(`^(pad\d*|reserved\d*|payload)$`)
)

// TestMirrorsComplete finds structs and fields of the headers that have no Go
// twin. Padding is only part of the sizes.
func TestMirrorsComplete(t *testing.T) {
	fields := map[string]map[string]bool{}
	for _, m := range mirrors {
		fields[m.ctype] = map[string]bool{}
		for i := range m.gotype.NumField() {
			fields[m.ctype][snake(m.gotype.Field(i).Name)] = true
		}
	}
	found := 0
	for _, h := range []string{"ring.h", "hot.h", "segment.h"} {
		text, err := os.ReadFile(filepath.Join("..", "include", "weft", h))
		if err != nil {
			t.Fatal(err)
		}
		in := ""
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "/*")
			if m := structLine.FindStringSubmatch(code); m != nil {
				if in = m[1]; fields[in] == nil {
					t.Errorf("%s: struct %s has no Go mirror in the table", h, in)
				}
				continue
			}
			if strings.HasPrefix(code, "}") {
				in = ""
			}
			m := fieldName.FindStringSubmatch(code)
			if in == "" || m == nil || fillerName.MatchString(m[1]) {
				continue
			}
			if found++; fields[in] != nil && !fields[in][m[1]] {
				t.Errorf("%s: struct %s: field %s has no Go twin", h, in, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d fields found: the headers are written in another way than this test reads", found)
	}
}
