// Package capture shows what is on a wire: the frames that cross one device, or every device, of a network namespace,
// taken apart into headers.
//
// It has two halves that know nothing of each other.
//
//	Decode    bytes -> Frame; pure, total, fuzzed. It reads Ethernet, IPv4, IPv6 with its extension headers, UDP, TCP, ICMP,
//	          VXLAN on the two ports in use, Geneve on its port and IP in IP, and follows a tunnel into the frame inside.
//	Capture   a packet socket in a namespace, which hands its frames to Decode
//
// The package is for proofs, not for measuring: a packet socket costs every frame a copy, so nothing may be timed while
// one is open. It keeps the first 256 bytes of a frame and its true length, which is all that a proof needs, and tells
// when it lost a frame rather than pretending that nothing was there.
package capture
