// Package capture captures the frames that cross one device, or every device, of a network namespace, and decodes their
// headers.
//
// It has two independent halves.
//
//	Decode    bytes -> Frame; pure, total, fuzzed. It reads Ethernet, IPv4, IPv6 with its extension headers, UDP, TCP, ICMP,
//	          VXLAN on the two ports in use, Geneve on its port and IP in IP, and follows a tunnel into the frame inside.
//	Capture   a packet socket in a namespace, which hands its frames to Decode
//
// The package is for proofs, not for measuring: a packet socket costs every frame a copy, so nothing may be timed while
// one is open. It keeps the first 256 bytes of a frame and its true length, which is enough for a proof, and reports
// lost frames.
package capture
