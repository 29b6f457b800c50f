// Package region has memory regions as the accesses of peers find them: by their keys ([Table]), for a range and rights
// ([Table.Access]), through a gate at which closing a region waits for accesses ([Region.Gate]), and for
// which peers ([Region.Opens], [Scope]). How a region becomes known to transports and devices is its owner's.
package region
