package av

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/provider/internal/authkey"
)

// A domain that was opened with fi.AVAuthKey in the place of a key's size has its
// authorisation keys in address vectors (fi_av(3)). An address is inserted under one
// of them, and an endpoint takes all that are there when it is enabled: it sends
// to an address with the key of that address, and receives from every address with any of them. A
// Peer that sends under two keys is two sources, as it is two addresses.
//
// A key's number, counted from 1, is in the names of its addresses
// (names.Name.Key). So everything that distinguishes peers by their names distinguishes keys
// apart too: links, identities, matching, transports.

// authKeyAddr is the fi.Addr of the first authorisation key. No address has it, so
// that LookupAuthKey can distinguish them.
const authKeyAddr fi.Addr = 0xC7 << 48

// avKey is one of an address vector's authorisation keys, under its lock.
type avKey struct {
	key      authkey.Key // "": this number is not in use
	inserted int         // how often
	users    int         // enabled endpoints, regions and addresses
	id       fi.Addr     // what completions call it: FI_AV_USER_ID
}

// KeyNumber returns the number of the key with a handle, 0 if there is none.
func (a *AV) KeyNumber(handle fi.Addr) uint8 {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	return a.keyNumber(handle)
}

// keyNumber is KeyNumber for a caller that has the lock.
func (a *AV) keyNumber(handle fi.Addr) uint8 {
	if i := uint64(handle - authKeyAddr); i < uint64(len(a.keys)) && a.keys[i].key != "" {
		return uint8(i) + 1
	}
	return 0
}

// InsertAuthKey enters an authorisation key and returns its handle, the one that it
// has if it is there already. Endpoints that are enabled do not get it. Errors:
// fi.EINVAL unless the domain keeps keys in address vectors, for none, for one
// of more than info.MaxAuthKey bytes, and for one that the domain's device does not
// admit, fi.EBADFLAGS unless flags is 0, fi.ENOSPC
// when there are as many as the domain's max_ep_auth_key.
func (a *AV) InsertAuthKey(key []byte, flags uint64) (fi.Addr, error) {
	const what = "insert an authorisation key"
	switch {
	case flags != 0:
		return fi.AddrNotAvail, refuse(fi.EBADFLAGS, what+": flags %#x", flags)
	case !(a.o.Keys != 0):
		return fi.AddrNotAvail, refuse(fi.EINVAL, what+": the domain was opened without FI_AV_AUTH_KEY")
	case len(key) == 0 || len(key) > info.MaxAuthKey:
		return fi.AddrNotAvail, refuse(fi.EINVAL, what+" of %d bytes, 1 to %d are possible",
			len(key), info.MaxAuthKey)
	}
	if a.o.Admits != nil {
		if err := a.o.Admits(authkey.Key(key)); err != nil {
			return fi.AddrNotAvail, refuse(fi.EINVAL, what+": %v", err)
		}
	}
	a.addrs.Lock()
	defer a.addrs.Unlock()
	free := len(a.keys)
	for i := range a.keys {
		switch a.keys[i].key {
		case authkey.Key(key):
			a.keys[i].inserted++
			return authKeyAddr + fi.Addr(i), nil
		case "":
			free = min(free, i)
		}
	}
	if free == a.o.Keys {
		return fi.AddrNotAvail, refuse(fi.ENOSPC, what+": the address vector has %d", free)
	}
	if free == len(a.keys) {
		a.keys = append(a.keys, avKey{})
	}
	handle := authKeyAddr + fi.Addr(free)
	a.keys[free] = avKey{key: authkey.Key(key), inserted: 1, id: handle}
	if a.flags&fi.AVUserID != 0 {
		a.keys[free].id = fi.AddrNotAvail
	}
	return handle, nil
}

// LookupAuthKey writes an authorisation key to b, as much of it as fits, and returns
// its bytes: the key with a handle, or the one under which an address was
// inserted. fi.EINVAL if there is none.
func (a *AV) LookupAuthKey(addr fi.Addr, b []byte) (needed int, err error) {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	number := a.keyNumber(addr)
	if number == 0 && len(a.keys) != 0 { // a vector without keys may be a shared one, whose lock Name takes
		if n, ok := a.Name(addr); ok {
			number = n.Key
		}
	}
	if number == 0 {
		return 0, refuse(fi.EINVAL, "authorisation key of %#x: there is none", addr)
	}
	key := a.keys[number-1].key
	copy(b, key)
	return len(key), nil
}

// removeAuthKeys takes keys out, each as often as it was inserted. What is wrong with one does not keep the others, and
// the first such is the error: fi.EINVAL for one that is not there, fi.EBUSY while enabled endpoints, regions or
// addresses have it.
func (a *AV) removeAuthKeys(handles []fi.Addr) (err error) {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	for _, h := range handles {
		if refused := a.removeAuthKey(h); err == nil {
			err = refused
		}
	}
	return err
}

// removeAuthKey is removeAuthKeys for one. The caller has the lock.
func (a *AV) removeAuthKey(h fi.Addr) error {
	number := a.keyNumber(h)
	if number == 0 {
		return refuse(fi.EINVAL, "remove authorisation key %#x: there is none", h)
	}
	k := &a.keys[number-1]
	switch {
	case k.inserted > 1:
		k.inserted--
	case k.users != 0:
		return refuse(fi.EBUSY, "remove authorisation key %#x: %d endpoints, regions and addresses use it",
			h, k.users)
	default:
		*k = avKey{}
	}
	return nil
}

// ReportedKey is what a completion calls the key with a number.
func (a *AV) ReportedKey(number uint8) fi.Addr {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	if int(number)-1 >= len(a.keys) || number == 0 {
		return fi.AddrNotAvail
	}
	return a.keys[number-1].id
}

// HoldKeys gives an endpoint that is about to be enabled, or a region, the keys of
// the address vector, or only the one with a number if that is not 0. The caller
// gives them back with DropKeys. fi.EINVAL if there is none.
func (a *AV) HoldKeys(only uint8) ([]hw.Key, error) {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	var list []hw.Key
	for i := range a.keys {
		if k := &a.keys[i]; k.key != "" && (only == 0 || int(only) == i+1) {
			k.users++
			list = append(list, hw.Key{Number: uint8(i) + 1, Secret: k.key.Bytes()})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the address vector has no authorisation key: %w", fi.EINVAL)
	}
	return list, nil
}

// DropKeys gives back what HoldKeys gave.
func (a *AV) DropKeys(list []hw.Key) {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	for _, k := range list {
		a.keys[k.Number-1].users--
	}
}

// keysToInsert returns the numbers of the keys under which a call inserts its n
// addresses, nil if the domain has no keys in address vectors. The caller has the lock. The
// error wraps fi.EINVAL.
func (a *AV) keysToInsert(n int, in *Insertion) ([]uint8, error) {
	if !(a.o.Keys != 0) {
		return nil, nil
	}
	numbers := make([]uint8, n)
	for i := range numbers {
		if numbers[i] = a.keyNumber(in.Addrs[i]); numbers[i] == 0 {
			return nil, fmt.Errorf("%#x is no authorisation key: %w", in.Addrs[i], fi.EINVAL)
		}
	}
	return numbers, nil
}

// checkKeyed checks the flags of an insertion against the domain. Addresses without a
// key are none that an endpoint with keys could reach.
func (a *AV) checkKeyed(n int, in *Insertion) error {
	keyed := (a.o.Keys != 0)
	switch {
	case n == 0:
	case keyed != (in.Flags&fi.AuthKey != 0):
		return fmt.Errorf(
			"FI_AUTH_KEY is for the addresses of a domain with FI_AV_AUTH_KEY, and for all of them: %w", fi.EINVAL)
	case keyed && (in.Addrs == nil || in.Flags&fi.AVUserID != 0):
		return fmt.Errorf("FI_AUTH_KEY without keys, or with FI_AV_USER_ID: %w", fi.EINVAL)
	}
	return nil
}

// setKeyID has completions call the key with a handle id.
func (a *AV) setKeyID(handle, id fi.Addr) error {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	number := a.keyNumber(handle)
	if number == 0 {
		return refuse(fi.EINVAL, "set user id of authorisation key %#x: there is none", handle)
	}
	a.keys[number-1].id = id
	return nil
}
