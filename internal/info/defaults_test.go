package info

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// opened is what a domain was opened with.
func opened() *fi.Info {
	return &fi.Info{
		Caps: fi.Msg | fi.Tagged, EP: &fi.EPAttr{Type: fi.EPRDM},
		Tx: &fi.TxAttr{Size: 64, InjectSize: 128, IOVLimit: 2}, Rx: &fi.RxAttr{Size: 32, IOVLimit: 3},
	}
}

// TestDefaults: what is left out is the domain's, what is given stays, and nothing is shared with what was given.
func TestDefaults(t *testing.T) {
	d := Defaults{Own: opened(), Format: fi.SockaddrIn, Inject: 256}
	empty := &fi.Info{}
	full, err := d.Complete(empty)
	if err != nil {
		t.Fatal(err)
	}
	if full.AddrFormat != fi.SockaddrIn || full.EP.Type != fi.EPRDM || full.Tx.Size != 64 ||
		full.Tx.InjectSize != 128 || full.Rx.Size != 32 || full.Rx.Caps != full.Caps {
		t.Errorf("%+v, transmit %+v, receive %+v", full, full.Tx, full.Rx)
	}
	if empty.Tx != nil || full.Tx == d.Own.Tx || full.EP == d.Own.EP || full.Rx == d.Own.Rx {
		t.Error("attributes that are shared")
	}
	given := &fi.Info{AddrFormat: fi.SockaddrIn6, Tx: &fi.TxAttr{InjectSize: 256}, Rx: &fi.RxAttr{Size: 7}}
	if full, err = d.Complete(given); err != nil || full.AddrFormat != fi.SockaddrIn6 || full.Tx.InjectSize != 256 ||
		full.Tx.Size != 64 || full.Rx.Size != 7 {
		t.Errorf("%+v, %v", full, err)
	}
	if rx, err := d.CompleteRx(nil); err != nil || rx.Size != 32 || rx.IOVLimit != 3 {
		t.Errorf("no receive attributes: %+v, %v", rx, err)
	}
	d.Own.Rx = nil
	if rx, err := d.CompleteRx(nil); err != nil || rx.Size != 1024 || rx.IOVLimit != IOVLimit || rx.Caps != d.Own.Caps {
		t.Errorf("the domain has none: %+v, %v", rx, err)
	}
}

// TestDefaultsRefused: attributes beyond the limits are refused.
func TestDefaultsRefused(t *testing.T) {
	for what, change := range map[string]func(d *Defaults, given *fi.Info){
		"inject":          func(d *Defaults, given *fi.Info) { given.Tx = &fi.TxAttr{InjectSize: 257} },
		"transmit vector": func(d *Defaults, given *fi.Info) { given.Tx = &fi.TxAttr{IOVLimit: IOVLimit + 1} },
		"traffic class":   func(d *Defaults, given *fi.Info) { given.Tx = &fi.TxAttr{TClass: 0x7fff} },
		"receive vector":  func(d *Defaults, given *fi.Info) { given.Rx = &fi.RxAttr{IOVLimit: IOVLimit + 1} },
		"no endpoint":     func(d *Defaults, given *fi.Info) { d.Own.EP = nil },
		"no transmits":    func(d *Defaults, given *fi.Info) { d.Own.Tx = nil },
	} {
		d, given := Defaults{Own: opened(), Inject: 256}, opened()
		change(&d, given)
		if _, err := d.Complete(given); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("%s: %v", what, err)
		}
	}
}
