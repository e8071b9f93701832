// Package vpc delivers frames as the network of a VPC does: a host sends all frames to its router, and the VPC delivers
// each to the host with its destination. No router decrements the TTL.
//
//	host ── port of the switch: Router gives the frame the MAC address of its destination ── bridge ── other host
//
// The port of a trunk has a VLAN for each interface on the trunk. Tags exist between host and port only:
//
//	host ── tag of the source ── port ── no tag ── bridge ── no tag ── port ── tag of the destination ── other host
package vpc
