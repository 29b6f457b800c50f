package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/names"
)

// What kind a domain is of.

// Keyed reports whether authorisation keys are in address vectors (FI_AV_AUTH_KEY).
func (d *Domain) Keyed() bool { return d.info.Domain.AuthKeySize == fi.AVAuthKey }

// Matches reports whether a device matches the messages of the domain's endpoints.
func (d *Domain) Matches() bool { return d.format == names.Matched }

// matchesNot refuses what a domain of matched endpoints has not.
func (d *Domain) matchesNot(what string) error {
	if d.Matches() {
		return refuse(log.Domain, fi.EOPNOTSUPP, "open %s: in a domain of FI_PROTO_CXI", what)
	}
	return nil
}
