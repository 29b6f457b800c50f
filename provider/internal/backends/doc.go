// Package backends opens transports. It is the one place where these are chosen by name: the transport to peers on this
// host ([Endpoint.OpenLocal]), those to other hosts ([Endpoint.OpenNetworks]), a domain's device ([Device]), and
// devices that match messages ([OpenMatched]). All else asks transports for what they can do.
package backends
