package info

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/weft-fabric/weft/fi"
)

// domainCases has the attributes of domains and fabrics.
var domainCases = slices.Concat(plainDomainCases, threadingCases(), mrModeCases(), refusedModeCases(),
	provNameCases(), countCases())

var plainDomainCases = []attrCase{
	{name: "domain default", set: func(h *fi.Info) {}, check: func(i *fi.Info) bool {
		d := *i.Domain
		d.Name = ""
		return reflect.DeepEqual(d, domainDefault())
	}},
	{name: "threading unknown", set: func(h *fi.Info) { h.Domain.Threading = 9 }, refused: "domain_attr.threading"},
	{name: "manual", set: func(h *fi.Info) {
		h.Domain.ControlProgress, h.Domain.DataProgress = fi.ProgressManual, fi.ProgressManual
	}, check: func(i *fi.Info) bool {
		return i.Domain.ControlProgress == fi.ProgressManual && i.Domain.DataProgress == fi.ProgressManual
	}},
	{name: "unified progress", version: fi.Version(2, 0),
		set:   func(h *fi.Info) { h.Domain.DataProgress = fi.ProgressControlUnified },
		check: func(i *fi.Info) bool { return i.Domain.DataProgress == fi.ProgressControlUnified }},
	{name: "auto data", set: func(h *fi.Info) { h.Domain.DataProgress = fi.ProgressAuto },
		check: func(i *fi.Info) bool {
			return i.Domain.ControlProgress == fi.ProgressAuto && i.Domain.DataProgress == fi.ProgressAuto
		}},
	{name: "auto control", set: func(h *fi.Info) { h.Domain.ControlProgress = fi.ProgressAuto },
		check: func(i *fi.Info) bool {
			return i.Domain.ControlProgress == fi.ProgressAuto && i.Domain.DataProgress == fi.ProgressManual
		}},
	{name: "progress unknown", set: func(h *fi.Info) { h.Domain.DataProgress = 4 },
		refused: "domain_attr.data_progress"},
	{name: "resources enabled", set: func(h *fi.Info) { h.Domain.ResourceMgmt = fi.RMEnabled },
		check: func(i *fi.Info) bool { return i.Domain.ResourceMgmt == fi.RMEnabled }},
	{name: "resources disabled", set: func(h *fi.Info) { h.Domain.ResourceMgmt = fi.RMDisabled },
		check: func(i *fi.Info) bool { return i.Domain.ResourceMgmt == fi.RMDisabled }},
	{name: "resources unknown", set: func(h *fi.Info) { h.Domain.ResourceMgmt = 3 },
		refused: "domain_attr.resource_mgmt"},
	{name: "av map", set: func(h *fi.Info) { h.Domain.AVType = fi.AVMap },
		check: func(i *fi.Info) bool { return i.Domain.AVType == fi.AVMap }},
	{name: "av table", set: func(h *fi.Info) { h.Domain.AVType = fi.AVTable },
		check: func(i *fi.Info) bool { return i.Domain.AVType == fi.AVTable }},
	{name: "av unknown", set: func(h *fi.Info) { h.Domain.AVType = 3 }, refused: "domain_attr.av_type"},
	{name: "mr count", set: func(h *fi.Info) { h.Domain.MRCnt = 1 << 30 },
		check: func(i *fi.Info) bool { return i.Domain.MRCnt == 1<<30 }},
	{name: "mr count, small", set: func(h *fi.Info) { h.Domain.MRCnt = 1 },
		check: func(i *fi.Info) bool { return i.Domain.MRCnt == MRCount }},
	{name: "tclass", set: func(h *fi.Info) { h.Domain.TClass = fi.TCDSCP | 46 },
		check: func(i *fi.Info) bool { return i.Domain.TClass == fi.TCDSCP|46 }},
	{name: "domain key", set: func(h *fi.Info) { h.Domain.AuthKey = []byte{1} },
		check: func(i *fi.Info) bool { return i.Domain.AuthKeySize == 1 && i.Domain.AuthKey[0] == 1 }},
	{name: "domain key size", set: func(h *fi.Info) { h.Domain.AuthKeySize = 9 }, refused: "domain_attr.auth_key_size"},
	{name: "domain key in av, before 1.20", set: func(h *fi.Info) { h.Domain.AuthKeySize = fi.AVAuthKey },
		refused: "domain_attr.auth_key_size"},
	{name: "domain key in av", version: fi.Version(1, 20),
		set: func(h *fi.Info) { h.Domain.AuthKeySize = fi.AVAuthKey },
		check: func(i *fi.Info) bool {
			return i.Domain.AuthKeySize == fi.AVAuthKey && i.Domain.AuthKey == nil &&
				i.Domain.MaxEPAuthKey == MaxEPAuthKey
		}},
	{name: "domain key in av, connected", version: fi.Version(1, 20), set: func(h *fi.Info) {
		h.EP.Type,
			h.Domain.AuthKeySize = fi.EPMsg, fi.AVAuthKey
	},
		refused: "domain_attr.auth_key_size"},
	{name: "domain key in av and here", version: fi.Version(1, 20), set: func(h *fi.Info) {
		h.Domain.AuthKey,
			h.Domain.AuthKeySize = []byte{1}, fi.AVAuthKey
	},
		refused: "domain_attr.auth_key"},
	{name: "domain key in av and endpoint's", version: fi.Version(1, 20), set: func(h *fi.Info) {
		h.EP.AuthKey,
			h.Domain.AuthKeySize = []byte{1}, fi.AVAuthKey
	},
		refused: "ep_attr.auth_key_size"},
	{name: "domain key in 1.4", version: fi.Version(1, 4), set: func(h *fi.Info) { h.Domain.AuthKeySize = 9 },
		check: func(i *fi.Info) bool { return i.Domain.AuthKeySize == 0 }},
	{name: "group id", version: fi.Version(2, 0), set: func(h *fi.Info) { h.Domain.MaxGroupID = 1 },
		refused: "domain_attr.max_group_id"},
	{name: "keys per endpoint", version: fi.Version(2, 0), set: func(h *fi.Info) { h.Domain.MaxEPAuthKey = 3 },
		check: func(i *fi.Info) bool { return i.Domain.MaxEPAuthKey == 3 }},
	{name: "too many keys per endpoint", version: fi.Version(2, 0),
		set: func(h *fi.Info) { h.Domain.MaxEPAuthKey = MaxEPAuthKey + 1 }, refused: "domain_attr.max_ep_auth_key"},
	{name: "keys of a connected endpoint", version: fi.Version(2, 0), set: func(h *fi.Info) {
		h.EP.Type,
			h.Domain.MaxEPAuthKey = fi.EPMsg, 1
	}, refused: "domain_attr.max_ep_auth_key"},
	{name: "counter range", version: fi.Version(2, 5), set: func(h *fi.Info) {
		h.Domain.MaxCntrValue,
			h.Domain.MaxErrCntrValue = max64, max64
	},
		check: func(i *fi.Info) bool { return i.Domain.MaxCntrValue == max64 && i.Domain.MaxErrCntrValue == max64 }},
	{name: "domain name", set: func(h *fi.Info) { h.Domain.Name = "eth0" },
		check: func(i *fi.Info) bool { return i.Domain.Name == "eth0" }},
	{name: "unknown domain name", set: func(h *fi.Info) { h.Domain.Name = "invalid_domain" },
		refused: "domain_attr.name"},
	{name: "open domain", set: func(h *fi.Info) { h.Domain.Domain = object("eth1") },
		check: func(i *fi.Info) bool { return i.Domain.Name == "eth1" && i.Domain.Domain == object("eth1") }},
	{name: "open domain of another name", set: func(h *fi.Info) {
		h.Domain.Domain, h.Domain.Name = object("eth1"),
			"eth0"
	}, refused: "domain_attr.name"},
	{name: "foreign domain", set: func(h *fi.Info) { h.Domain.Domain = 7 }, refused: "domain_attr"},
	{name: "fabric name", set: func(h *fi.Info) { h.Fabric.Name = "10.1.0.0/16" },
		check: func(i *fi.Info) bool { return i.Fabric.Name == "10.1.0.0/16" && i.Domain.Name == "eth1" }},
	{name: "unknown fabric name", set: func(h *fi.Info) { h.Fabric.Name = "10.1.0.0/17" }, refused: "fabric_attr.name"},
	{name: "open fabric", set: func(h *fi.Info) { h.Fabric.Fabric = object("2001:db8::/64") },
		check: func(i *fi.Info) bool {
			return i.Fabric.Name == "2001:db8::/64" && i.Fabric.Fabric == object("2001:db8::/64")
		}},
	{name: "foreign fabric", set: func(h *fi.Info) { h.Fabric.Fabric = 7 }, refused: "fabric_attr"},
	{name: "provider version", set: func(h *fi.Info) { h.Fabric.ProvVersion = ProvVersion },
		check: func(i *fi.Info) bool { return i.Fabric.ProvVersion == ProvVersion && i.Fabric.APIVersion == v117 }},
	{name: "later provider version", set: func(h *fi.Info) { h.Fabric.ProvVersion = ProvVersion + 1 },
		refused: "fabric_attr.prov_version"},
	{name: "api version", version: fi.Version(1, 5), set: func(h *fi.Info) { h.Fabric.APIVersion = v117 },
		check: func(i *fi.Info) bool { return i.Fabric.APIVersion == fi.Version(1, 5) }},
}

// object is an opened fabric or domain.
type object string

func (o object) DomainName() string { return string(o) }
func (o object) FabricName() string { return string(o) }

func domainDefault() fi.DomainAttr {
	return fi.DomainAttr{
		Threading: fi.ThreadSafe, ControlProgress: fi.ProgressManual, DataProgress: fi.ProgressManual,
		ResourceMgmt: fi.RMEnabled, AVType: fi.AVUnspec, MRKeySize: 8, CQDataSize: 8,
		CQCnt: 65536, EPCnt: 65536, TxCtxCnt: 64, RxCtxCnt: 64, MaxEPTxCtx: 64, MaxEPRxCtx: 64,
		MaxEPSTxCtx: 1024, MaxEPSRxCtx: 1024, CntrCnt: 65536, MRIOVLimit: 16,
		Caps: fi.LocalComm | fi.RemoteComm | fi.SharedAV, MaxErrData: 77, MRCnt: 65536,
		MaxCntrValue: max64, MaxErrCntrValue: max64,
	}
}

func threadingCases() (list []attrCase) {
	for th := fi.ThreadSafe; th <= fi.ThreadEndpoint; th++ {
		list = append(list, attrCase{
			name:  fmt.Sprint("threading ", th),
			set:   func(h *fi.Info) { h.Domain.Threading = th },
			check: func(i *fi.Info) bool { return i.Domain.Threading == th },
		})
	}
	return list
}

func mrModeCases() (list []attrCase) {
	for _, c := range []struct {
		version     uint32
		asked, want fi.MRMode
	}{
		{fi.Version(1, 0), 0, fi.MRBasic},
		{fi.Version(1, 4), 0, fi.MRBasic},
		{fi.Version(1, 4), fi.MRBasic, fi.MRBasic},
		{fi.Version(1, 4), fi.MRScalable, fi.MRScalable},
		{fi.Version(1, 5), 0, 0},
		{fi.Version(1, 5), fi.MRBasic, fi.MRBasic},
		{fi.Version(2, 0), fi.MRBasic, fi.MRBasic},
		{fi.Version(1, 17), fi.MRScalable, fi.MRScalable},
		{fi.Version(1, 17), fi.MRLocal | fi.MRProvKey | fi.MRVirtAddr | fi.MRAllocated,
			fi.MRLocal | fi.MRProvKey | fi.MRVirtAddr | fi.MRAllocated},
		{fi.Version(1, 17), fi.MRHMEM | fi.MREndpoint | fi.MRRaw, 0},
		{fi.Version(2, 0), -1 &^ (fi.MRBasic | fi.MRScalable), takenModes},
		{fi.Version(2, 0), fi.MRLocal | 1<<30, fi.MRLocal},
	} {
		list = append(list, attrCase{
			name:    fmt.Sprintf("mr mode %#x in %d.%d", int(c.asked), fi.Major(c.version), fi.Minor(c.version)),
			version: c.version,
			set:     func(h *fi.Info) { h.Domain.MRMode = c.asked },
			check:   func(i *fi.Info) bool { return i.Domain.MRMode == c.want },
		})
	}
	return list
}

func refusedModeCases() (list []attrCase) {
	for _, c := range []struct {
		version uint32
		asked   fi.MRMode
	}{
		{fi.Version(1, 4), fi.MRVirtAddr},
		{fi.Version(1, 4), fi.MRBasic | fi.MRScalable},
		{fi.Version(1, 4), fi.MRBasic | fi.MRLocal},
		{fi.Version(1, 17), fi.MRBasic | fi.MRScalable},
		{fi.Version(1, 17), fi.MRScalable | fi.MRLocal},
		{fi.Version(2, 0), fi.MRBasic | fi.MRHMEM},
		{fi.Version(2, 0), -1},
	} {
		list = append(list, attrCase{
			name:    fmt.Sprintf("mr mode %#x in %d.%d", int(c.asked), fi.Major(c.version), fi.Minor(c.version)),
			version: c.version, set: func(h *fi.Info) { h.Domain.MRMode = c.asked }, refused: "domain_attr.mr_mode",
		})
	}
	return list
}

func provNameCases() (list []attrCase) {
	for name, ok := range map[string]bool{
		"weft": true, "WEFT": true, "tcp,weft": true, "shm, weft": true, "weft;ofi_rxm": true, "^tcp": true,
		"tcp": false, "weft2": false, "tcp,shm": false, "ofi_rxm": false, ",": false,
	} {
		c := attrCase{name: "provider " + name, set: func(h *fi.Info) { h.Fabric.ProvName = name }}
		if ok {
			c.check = func(i *fi.Info) bool { return i.Fabric.ProvName == "weft" }
		} else {
			c.refused = "fabric_attr.prov_name"
		}
		list = append(list, c)
	}
	return list
}

// countCases asks for each number's limit, and for one more.
func countCases() (list []attrCase) {
	for _, c := range []struct {
		attr  string
		field func(d *fi.DomainAttr) *uint64
		limit uint64
	}{
		{"mr_key_size", func(d *fi.DomainAttr) *uint64 { return &d.MRKeySize }, 8},
		{"cq_data_size", func(d *fi.DomainAttr) *uint64 { return &d.CQDataSize }, 8},
		{"cq_cnt", func(d *fi.DomainAttr) *uint64 { return &d.CQCnt }, ObjectCount},
		{"ep_cnt", func(d *fi.DomainAttr) *uint64 { return &d.EPCnt }, ObjectCount},
		{"tx_ctx_cnt", func(d *fi.DomainAttr) *uint64 { return &d.TxCtxCnt }, ObjectCount},
		{"rx_ctx_cnt", func(d *fi.DomainAttr) *uint64 { return &d.RxCtxCnt }, ObjectCount},
		{"max_ep_tx_ctx", func(d *fi.DomainAttr) *uint64 { return &d.MaxEPTxCtx }, MaxCtx},
		{"max_ep_rx_ctx", func(d *fi.DomainAttr) *uint64 { return &d.MaxEPRxCtx }, MaxCtx},
		{"max_ep_stx_ctx", func(d *fi.DomainAttr) *uint64 { return &d.MaxEPSTxCtx }, MaxSharing},
		{"max_ep_srx_ctx", func(d *fi.DomainAttr) *uint64 { return &d.MaxEPSRxCtx }, MaxSharing},
		{"cntr_cnt", func(d *fi.DomainAttr) *uint64 { return &d.CntrCnt }, ObjectCount},
		{"mr_iov_limit", func(d *fi.DomainAttr) *uint64 { return &d.MRIOVLimit }, MRIOVLimit},
		{"max_err_data", func(d *fi.DomainAttr) *uint64 { return &d.MaxErrData }, MaxErrData},
	} {
		list = append(list, attrCase{
			name:  c.attr,
			set:   func(h *fi.Info) { *c.field(h.Domain) = c.limit },
			check: func(i *fi.Info) bool { return *c.field(i.Domain) == c.limit },
		}, attrCase{
			name:    c.attr + " limit",
			set:     func(h *fi.Info) { *c.field(h.Domain) = c.limit + 1 },
			refused: "domain_attr." + c.attr,
		})
	}
	return list
}
