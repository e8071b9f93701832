// Package impair is a wire with known faults: it carries frames between two devices of a namespace, and delays and
// loses some of those that go one way, as it was told. It is there so that a measurement can be held to a truth; no
// number of a dataplane is taken over it.
//
// A Line is a thread for each direction that reads a packet socket at one device and writes one at the other. Frames
// keep their checksum state and their segmentation (the virtio header goes with them). A frame leaves Delay after the
// kernel saw it come in; frames are lost evenly, each 1/Loss-th, so that the share is right in any number of them. A
// kernel with netem has this built in; the lab is to be the same on one without.
//
//	host ── eth0 ∥ A ═══ Line ═══ B ∥ switch
//	               delayed, lossy ─►
//	             ◄─ as it is
//
// Read Line, then pipe.
package impair
