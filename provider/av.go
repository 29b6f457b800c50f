package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/names"
)

// SymCount is how many addresses a range of nodes and services names: see [av.SymCount].
func SymCount(nodes, services uint64) (int, error) { return av.SymCount(nodes, services) }

// OpenAV opens an address vector: see [av.Open].
func (d *Domain) OpenAV(attr *fi.AVAttr) (*AV, error) { return d.openAV(attr, av.MaxLines) }

// openAV is OpenAV with room for so many addresses at most.
func (d *Domain) openAV(attr *fi.AVAttr, limit uint64) (*AV, error) {
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	o := av.Options{Owner: d, Format: d.format, Capacity: uint64(d.cfg.AVSizeMax), Limit: limit,
		UserIDs: (d.info.Caps|d.info.Domain.Caps)&fi.AVUserID != 0,
		Domain:  d.DomainName(), Dir: d.cfg.SHMDir, Timeout: d.cfg.ConnectTimeout,
		Resolve: func(node, service string) ([]names.Name, error) {
			return d.resolver.Resolve(node, service, false)
		},
		Reach: d.reach, Here: d.local.Has, Closed: d.refs.Release}
	if d.Keyed() {
		o.Keys = d.keyLimit()
		if d.Matches() {
			o.Admits = func(key authkey.Key) error {
				device, err := d.device.Domain()
				if err != nil {
					return err
				}
				return backends.AdmitsMatchKey(device, key)
			}
		}
	}
	a, err := av.Open(attr, o)
	if err != nil {
		d.refs.Release()
	}
	return a, err
}

// Address vectors, for callers of this package.
type (
	// AV is an address vector.
	AV = av.AV
	// AVSet is an ordered set of addresses of an address vector.
	AVSet = av.Set
	// Insertion is what the calls that insert addresses have in common.
	Insertion = av.Insertion
)

// reach reports whether the domain's endpoints may reach an address: it is on this
// host, or in a container that shares memory with us, or there is a transport to others.
// Errors: fi.EHOSTUNREACH, and the kernel's if it cannot be found out.
func (d *Domain) reach(n names.Name) error {
	if d.cfg.Across() || d.Matches() {
		return nil
	}
	here, err := d.local.Find(n)
	if here || err != nil {
		return err
	}
	locals, err := d.local.Locals()
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	for _, l := range locals {
		if l.Iface == d.DomainName() && backends.Networked(l.Name, d.cfg) && !n.IsLoopback() {
			return nil
		}
	}
	if device, _ := d.device.Domain(); (device != nil || len(d.fabric.program.Networks()) != 0) && !n.IsLoopback() {
		return nil
	}
	return fmt.Errorf("it is not on this host: %w", fi.EHOSTUNREACH)
}
