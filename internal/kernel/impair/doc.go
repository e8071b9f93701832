// Package impair is a wire with known faults: it carries frames between two devices of a namespace, and delays and
// drops a given share in one direction. Tests compare measurements with these known values; no dataplane is measured
// over it.
//
// A Line is a thread for each direction that reads a packet socket at one device and writes one at the other. Frames
// keep their checksum state and their segmentation, by the virtio header. A frame leaves Delay after the kernel
// received it. Loss is regular: every 1/Loss-th frame is lost. Netem does the same, but not every kernel has it.
//
//	host ── eth0 ∥ A ═══ Line ═══ B ∥ switch
//	               delayed, lossy ─►
//	             ◄─ as it is
//
// Read Line, then pipe.
package impair
