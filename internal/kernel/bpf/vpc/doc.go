// Package vpc delivers frames as the network of a VPC does: a host sends all frames to its router, and the VPC delivers
// each to the host with its destination. No router decrements the TTL.
//
//	host ── port of the switch: Router gives the frame the MAC address of its destination ── bridge ── other host
package vpc
