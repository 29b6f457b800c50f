package provider

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// TestSharedRxCloseMidway closes an endpoint of a shared receive context while a long message that came to it is read
// into a receive of the context, a plain one and a multi-receive buffer: the receive fails at the endpoint that stays,
// and the buffer is given back when it is cancelled.
func TestSharedRxCloseMidway(t *testing.T) {
	for _, flags := range []uint64{0, fi.MultiRecv} {
		b := newBench(t, func(c *config.Config) { c.AssistSize = 0 }, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.MultiRecv})
		rx, err := b.domain.OpenSharedRx(nil)
		if err != nil {
			t.Fatal(err)
		}
		open := func() *side {
			s := &side{t: t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}
			if s.av, err = b.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable}); err != nil {
				t.Fatal(err)
			}
			if s.cq, err = b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged}, nil); err != nil {
				t.Fatal(err)
			}
			if s.ep, err = b.domain.OpenEndpoint(b.info); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{
				s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv), s.ep.BindAV(s.av, 0), s.ep.BindSharedRx(rx), s.ep.Enable(),
			} {
				wantErrno(t, err, fi.Success, "enable")
			}
			return s
		}
		goes, stays, from := open(), open(), b.side(t)
		from.know(goes)
		goes.know(from)
		const length = 64 << 20
		buf, long := make([]byte, 2*length), make([]byte, length)
		recv := RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Flags: flags, Context: 7}
		wantErrno(t, rx.PostRecv(&recv), fi.Success, "post")
		from.send(SendArgs{IOV: iovOf(long), Dest: from.addr[goes], Context: 1})
		r := leasedOf(goes.ep).rx
		for end := time.Now().Add(time.Minute); !r.rendezvous.Active() && !r.rendezvous.Waiting(); goes.ep.Progress() {
			if from.ep.Progress(); time.Now().After(end) {
				t.Fatal("no operation reads the message")
			}
		}
		goes.close()
		if flags != 0 {
			wantErrno(t, rx.Cancel(7), fi.Success, "cancel")
			stays.ep.Progress()
		}
		var got []cq.ErrEntry
		for e, err := stays.cq.ReadErr(); err == nil; e, err = stays.cq.ReadErr() {
			got = append(got, e)
		}
		for i, e := range got {
			last := flags != 0 && i == len(got)-1
			if e.Context != 7 || e.Err != fi.ECANCELED || (e.Flags&fi.MultiRecv != 0) != last {
				t.Errorf("error %d of %d: %+v", i, len(got), e)
			}
		}
		if want := 1 + int(flags/fi.MultiRecv); len(got) != want {
			t.Errorf("%d errors, want %d", len(got), want)
		}
		stays.close()
		wantErrno(t, rx.Close(), fi.Success, "close")
	}
}
