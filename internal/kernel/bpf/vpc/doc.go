// Package vpc delivers frames as the network of a VPC does: a host sends all to its router, and the VPC brings each frame to the
// host that has the destination. No router decrements the TTL.
//
//	host ── port of the switch: Router gives the frame the MAC address of its destination ── bridge ── other host
package vpc
