package tokens

import (
	"encoding"
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/token"
)

// Token is the serialised form of a memory token. It may be copied and compared.
type Token []byte

var (
	_ encoding.BinaryMarshaler   = Token(nil)
	_ encoding.TextMarshaler     = Token(nil)
	_ encoding.BinaryUnmarshaler = (*Token)(nil)
	_ encoding.TextUnmarshaler   = (*Token)(nil)
)

// MarshalBinary returns a copy of the bytes.
func (t Token) MarshalBinary() ([]byte, error) { return slices.Clone(t), nil }

// UnmarshalBinary takes a copy of bytes. Whether they are a token
// shows when they are opened, by an endpoint that knows the authorisation key. fi.EINVAL: there are too many.
func (t *Token) UnmarshalBinary(b []byte) error {
	if len(b) > token.MaxLen {
		return fi.EINVAL
	}
	*t = slices.Clone(b)
	return nil
}

// MarshalText returns the text form: printable ASCII without spaces.
func (t Token) MarshalText() ([]byte, error) { return token.AppendText(nil, t), nil }

// UnmarshalText takes the text form. fi.EINVAL: it is none.
func (t *Token) UnmarshalText(text []byte) error {
	b, err := token.ParseText(text)
	if err != nil {
		return fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	return t.UnmarshalBinary(b)
}

// String is the text form.
func (t Token) String() string { return string(token.AppendText(nil, t)) }
