// Package region has memory regions as the accesses of peers find them: by their keys ([Table]), for a range and rights
// ([Table.Access]), through a gate at which closing a region waits for accesses ([Region.Gate]), and for
// which peers ([Region.Opens], [Scope]). Where peers do not need this process
// to access it, a region is made known to transports, devices and the data plane ([Publisher]).
package region
