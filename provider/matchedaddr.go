package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/names"
)

// addressIn finds what is at an address of the endpoint's address vector.
func (e *MatchedEndpoint) addressIn(m hw.Matcher) func(fi.Addr, []byte) (hw.MatchAddress, error) {
	return func(a fi.Addr, name []byte) (hw.MatchAddress, error) {
		n, ok := e.av.Name(a)
		if !ok {
			return 0, fmt.Errorf("not in the address vector: %w", fi.EINVAL)
		}
		return m.ParseMatchName(append(name, n.IP[:names.WordLen]...))
	}
}
