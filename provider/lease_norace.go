//go:build !race

package provider

func leaseTaken(*rxContext)   {}
func leaseGivenUp(*rxContext) {}
