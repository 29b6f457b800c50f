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

// TestDomainRefused: what fi_getinfo refuses as hints for a domain is not opened.
func TestDomainRefused(t *testing.T) {
	if err := CheckDomain(nil, get(t, v117, nil)[0]); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(d *fi.DomainAttr){
		"two modes":    func(d *fi.DomainAttr) { d.MRMode = fi.MRBasic | fi.MRScalable },
		"mixed modes":  func(d *fi.DomainAttr) { d.MRMode = fi.MRBasic | fi.MRLocal },
		"key size":     func(d *fi.DomainAttr) { d.MRKeySize = MRKeySize + 1 },
		"data size":    func(d *fi.DomainAttr) { d.CQDataSize = CQDataSize + 1 },
		"queues":       func(d *fi.DomainAttr) { d.CQCnt = max64 },
		"endpoints":    func(d *fi.DomainAttr) { d.EPCnt = max64 },
		"sharing":      func(d *fi.DomainAttr) { d.MaxEPSRxCtx = MaxSharing + 1 },
		"parts":        func(d *fi.DomainAttr) { d.MRIOVLimit = MRIOVLimit + 1 },
		"error data":   func(d *fi.DomainAttr) { d.MaxErrData = max64 },
		"keys":         func(d *fi.DomainAttr) { d.MaxEPAuthKey = max64 },
		"groups":       func(d *fi.DomainAttr) { d.MaxGroupID = 1 },
		"threading":    func(d *fi.DomainAttr) { d.Threading = 99 },
		"progress":     func(d *fi.DomainAttr) { d.DataProgress = 99 },
		"control":      func(d *fi.DomainAttr) { d.ControlProgress = 99 },
		"management":   func(d *fi.DomainAttr) { d.ResourceMgmt = 99 },
		"vector":       func(d *fi.DomainAttr) { d.AVType = 99 },
		"capabilities": func(d *fi.DomainAttr) { d.Caps = fi.Msg },
		"class":        func(d *fi.DomainAttr) { d.TClass = 0x7fff },
	} {
		i := get(t, v117, nil)[0]
		change(i.Domain)
		if err := CheckDomain(nil, i); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDefaultsRefused: attributes beyond the limits are refused.
func TestDefaultsRefused(t *testing.T) {
	for what, change := range map[string]func(d *Defaults, given *fi.Info){
		"inject":              func(d *Defaults, given *fi.Info) { given.Tx = &fi.TxAttr{InjectSize: 257} },
		"transmit vector":     func(d *Defaults, given *fi.Info) { given.Tx = &fi.TxAttr{IOVLimit: IOVLimit + 1} },
		"traffic class":       func(d *Defaults, given *fi.Info) { given.Tx = &fi.TxAttr{TClass: 0x7fff} },
		"receive vector":      func(d *Defaults, given *fi.Info) { given.Rx = &fi.RxAttr{IOVLimit: IOVLimit + 1} },
		"type":                func(d *Defaults, given *fi.Info) { given.EP.Type = 99 },
		"capability":          func(d *Defaults, given *fi.Info) { given.Caps |= 1 << 40 },
		"transmit capability": func(d *Defaults, given *fi.Info) { given.Tx.Caps = max64 },
		"receive capability":  func(d *Defaults, given *fi.Info) { given.Rx.Caps = max64 },
		"transmit order":      func(d *Defaults, given *fi.Info) { given.Tx.MsgOrder = max64 },
		"receive order":       func(d *Defaults, given *fi.Info) { given.Rx.MsgOrder = max64 },
		"completion order":    func(d *Defaults, given *fi.Info) { given.Tx.CompOrder = fi.OrderStrict },
		"transmit flags":      func(d *Defaults, given *fi.Info) { given.Tx.OpFlags = fi.CommitComplete },
		"receive flags":       func(d *Defaults, given *fi.Info) { given.Rx.OpFlags = fi.Inject },
		"transmit size":       func(d *Defaults, given *fi.Info) { given.Tx.Size = MaxCtxSize + 1 },
		"receive size":        func(d *Defaults, given *fi.Info) { given.Rx.Size = MaxCtxSize + 1 },
		"remote vector":       func(d *Defaults, given *fi.Info) { given.Tx.RMAIOVLimit = IOVLimit + 1 },
		"protocol":            func(d *Defaults, given *fi.Info) { given.EP.Protocol = fi.ProtoSHM },
		"version":             func(d *Defaults, given *fi.Info) { given.EP.ProtocolVersion = 99 },
		"message size":        func(d *Defaults, given *fi.Info) { given.EP.MaxMsgSize = max64 },
		"prefix":              func(d *Defaults, given *fi.Info) { given.EP.MsgPrefixSize = 8 },
		"contexts":            func(d *Defaults, given *fi.Info) { given.EP.TxCtxCnt = MaxCtx + 1 },
		"tags of datagrams":   func(d *Defaults, given *fi.Info) { given.EP.Type = fi.EPDgram },
		"contexts of datagram": func(d *Defaults, given *fi.Info) {
			given.Caps, given.EP.Type, given.EP.RxCtxCnt = fi.Msg, fi.EPDgram, 2
		},
		"no endpoint":  func(d *Defaults, given *fi.Info) { d.Own.EP = nil },
		"no transmits": func(d *Defaults, given *fi.Info) { d.Own.Tx = nil },
	} {
		d, given := Defaults{Own: opened(), Inject: 256}, opened()
		change(&d, given)
		if _, err := d.Complete(given); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("%s: %v", what, err)
		}
	}
}
