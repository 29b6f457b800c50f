package outbound

import (
	"github.com/weft-fabric/weft/internal/copies"
	"github.com/weft-fabric/weft/internal/hot"
)

// Fill copies n bytes of payload from an address into a bounce buffer of a stripe whose lease the caller holds.
func Fill(s *hot.Stripe, b *hot.Bounce, from, n uintptr) {
	copies.In.Copy(&s.Copies, Payload(b), from, n)
}
