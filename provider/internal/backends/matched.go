package backends

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/authkey"
)

// Matched is what a device needs to know of an endpoint whose messages it matches.
type Matched struct {
	Config   *config.Config
	Source   []byte // its name, as the device has it
	Receives int    // that may be posted
	Sends    int    // operations of others that may be in flight
	Stripes  int    // transmit queues that the endpoint may have, 0: one
	Keys     []hw.Key
	Own      authkey.Key // of the endpoint alone, in place of Keys, "": the domain's
	Direct   bool        // C calls Go without the runtime
	Messages bool        // it has messages of weft's own, too, and is reached for these by its name
}

// AdmitsDomainKey judges an authorisation key of a domain whose endpoints match messages. Errors: as of MatchDevices,
// hw.ErrUnreachable for a device that is not there, fi.EINVAL and hw.ErrPermission for the key.
func AdmitsDomainKey(c *config.Config, device string, key authkey.Key) error {
	devices, err := MatchDevices(c)
	if err != nil {
		return err
	}
	for _, d := range devices {
		if d.Name == device {
			return d.Admits(key.Bytes())
		}
	}
	return fmt.Errorf("no device %q: %w", device, hw.ErrUnreachable)
}
