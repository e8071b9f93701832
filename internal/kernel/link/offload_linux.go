package link

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// AnySegments is the kernel's maximum number of segments of a super-packet.
const AnySegments = 65535

// The features of GRO.
const (
	rxGRO = "rx-gro"
	// rxForwarded merges UDP packets for which the host has no socket.
	rxForwarded = "rx-udp-gro-forwarding"
)

// Merge defines what SegmentationOff leaves on. Devices that receive from the wire merge frames (GRO). All other devices
// keep their tx features, so that they forward merged packets unsegmented.
type Merge struct {
	// NICs are devices that receive from the wire. All tunnel devices count as such, too.
	NICs []string
	// UDP means that forwarded UDP packets are merged.
	UDP bool
}

// isReceiver reports whether a device receives from the wire. If m is nil, no device does.
func (m *Merge) isReceiver(l netlink.Link) bool {
	return m != nil && (slices.Contains(m.NICs, l.Attrs().Name) || slices.Contains([]string{"vxlan", "geneve", "ipip", "wireguard", "ip6tnl"}, l.Type()))
}

// permits reports whether SegmentationOff must leave a feature of a device on.
func (m *Merge) permits(l netlink.Link, feature string) bool {
	if m.isReceiver(l) {
		return feature == rxGRO || m.UDP && feature == rxForwarded
	}
	return m != nil && strings.HasPrefix(feature, "tx-")
}

// Cut lists the changes that SegmentationOff made.
type Cut struct {
	// Off are the features that it switched off, by device.
	Off map[string][]string
	// Kept are devices that could not switch a feature off; their super-packets are limited to one segment instead.
	Kept []string
}

// SegmentationOff switches off TSO, GSO (also inside tunnels) and GRO of every device but lo, except the features that
// merge permits. A nil merge permits none. It switches GRO on for the devices that merge lists as receiving from the
// wire. A device that cannot switch a feature off (macvlan) is limited to one segment. It returns the changes that
// SegmentationOn reverts.
func (h *Handle) SegmentationOff(merge *Merge) (Cut, error) {
	cut := Cut{Off: map[string][]string{}}
	links, _, err := h.links()
	if err != nil {
		return cut, err
	}
	err = h.withEthtool(func(e ethtool) error {
		for _, l := range links {
			name := l.Attrs().Name
			if name == Loopback {
				continue
			}
			gone, left, err := switchSegmentationOff(e, name, func(feature string) bool { return merge.permits(l, feature) })
			if len(gone) > 0 {
				cut.Off[name] = gone
			}
			if err == nil && len(left) > 0 {
				cut.Kept = append(cut.Kept, name)
				err = h.LimitSegments(name, 1)
			}
			if err != nil {
				return fmt.Errorf("switch segmentation of %s off: %w", name, err)
			}
		}
		return nil
	})
	for _, l := range links {
		if err == nil && merge.isReceiver(l) {
			err = h.SetFeatures(l.Attrs().Name, map[string]bool{rxGRO: true, rxForwarded: merge.UDP})
		}
	}
	return cut, err
}

// SegmentationOn switches the features of cut on again and lifts the limits of segments. It fails if a feature stays
// off.
func (h *Handle) SegmentationOn(cut Cut) error {
	devices := slices.Sorted(maps.Keys(cut.Off))
	err := h.withEthtool(func(e ethtool) error {
		for _, dev := range devices {
			known, err := e.features(dev)
			if err == nil {
				err = e.setFeatures(dev, known, featureValues(cut.Off[dev], true))
			}
			if err != nil {
				return fmt.Errorf("switch segmentation of %s on: %w", dev, err)
			}
		}
		return nil
	})
	for _, dev := range cut.Kept {
		if err == nil {
			err = h.LimitSegments(dev, AnySegments)
		}
	}
	// A bridge has the features of its ports, so it is verified after all are set.
	for _, dev := range devices {
		on, read := h.Segmentation(dev)
		missing := func(feature string) bool { return !slices.Contains(on, feature) }
		if err = cmp.Or(err, read); err == nil && slices.ContainsFunc(cut.Off[dev], missing) {
			err = fmt.Errorf("switch segmentation of %s on: it has %v of %v", dev, on, cut.Off[dev])
		}
	}
	return err
}

// featureValues returns a map in which each feature has the value on.
func featureValues(features []string, on bool) map[string]bool {
	want := map[string]bool{}
	for _, name := range features {
		want[name] = on
	}
	return want
}

// LimitSegments limits the number of segments in the super-packets of a device, and reads the limit back. It fails if
// the limit is different.
func (h *Handle) LimitSegments(dev string, segments int) error {
	what := fmt.Sprintf("limit super-packets of %s to %d segments", dev, segments)
	if err := h.changeDevice(dev, what, func(l netlink.Link) error { return h.nl.LinkSetGSOMaxSegs(l, segments) }); err != nil {
		return err
	}
	back, err := h.nl.LinkByName(dev)
	if err != nil {
		return fmt.Errorf("%s: read back: %w", what, err)
	}
	if got := back.Attrs().GSOMaxSegs; int(got) != segments {
		return fmt.Errorf("%s: they still have up to %d", what, got)
	}
	return nil
}

// LimitSize limits the sent and the merged super-packets of every device but lo to a number of bytes, in IPv4 and IPv6.
// More than 64 KiB is BIG TCP. It reads the limit of sent packets back, and fails if it is different.
func (h *Handle) LimitSize(bytes int) error {
	links, _, err := h.links()
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Attrs().Name == Loopback {
			continue
		}
		for _, limit := range []func(netlink.Link, int) error{
			h.nl.LinkSetGSOMaxSize, h.nl.LinkSetGROMaxSize, h.nl.LinkSetGSOIPv4MaxSize, h.nl.LinkSetGROIPv4MaxSize,
		} {
			if err := limit(l, bytes); err != nil {
				return fmt.Errorf("limit super-packets of %s to %d bytes: %w", l.Attrs().Name, bytes, err)
			}
		}
	}
	devices, err := h.Devices()
	for _, d := range devices {
		if err == nil && d.Name != Loopback && d.SuperPacket != bytes {
			err = fmt.Errorf("limit super-packets of %s to %d bytes: they still have up to %d", d.Name, bytes, d.SuperPacket)
		}
	}
	return err
}

// switchSegmentationOff switches off the segmentation features of a device, except those for which leave is true. gone has the
// features that it switched off. left has those that stay on although leave is false.
func switchSegmentationOff(e ethtool, dev string, leave func(feature string) bool) (gone, left []string, err error) {
	known, err := e.features(dev)
	if err != nil {
		return nil, nil, fmt.Errorf("read its features: %w", err)
	}
	for name, f := range known {
		if isSegmentation(name) && f.available && f.active && !leave(name) {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		if err := e.setFeatures(dev, known, featureValues(gone, false)); err != nil {
			return nil, nil, fmt.Errorf("set its features: %w", err)
		}
	}
	on, err := activeFeatures(e, dev)
	gone = slices.DeleteFunc(gone, func(feature string) bool { return slices.Contains(on, feature) })
	return gone, slices.DeleteFunc(on, leave), err
}

// Segmentation returns the segmentation and aggregation features of a device that are on.
func (h *Handle) Segmentation(dev string) (on []string, err error) {
	err = h.withEthtool(func(e ethtool) (err error) {
		on, err = activeFeatures(e, dev)
		return err
	})
	return on, err
}

// activeFeatures returns the segmentation features of a device that are on, sorted by name.
func activeFeatures(e ethtool, dev string) ([]string, error) {
	known, err := e.features(dev)
	if err != nil {
		return nil, fmt.Errorf("read the features of %s: %w", dev, err)
	}
	maps.DeleteFunc(known, func(name string, f feature) bool { return !f.active || !isSegmentation(name) })
	return slices.Sorted(maps.Keys(known)), nil
}

// isSegmentation reports whether a feature lets a packet represent several frames. tx-gso-robust does not: it only
// describes packets that the device accepts.
func isSegmentation(feature string) bool {
	switch feature {
	case rxGRO, "rx-gro-list", "rx-gro-hw", "rx-lro", rxForwarded, "tx-gso-partial", "tx-gso-list":
		return true
	}
	return strings.HasPrefix(feature, "tx-") && strings.HasSuffix(feature, "-segmentation")
}

// withEthtool calls do with a socket of the namespace, and closes the socket.
func (h *Handle) withEthtool(do func(ethtool) error) error {
	e := ethtool{-1}
	err := h.ns.Do(func() (err error) {
		e.socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return os.NewSyscallError("socket", err)
	})
	if err != nil {
		return err
	}
	defer unix.Close(e.socket)
	return do(e)
}

// SetFeatures switches features of a device on and off, by the kernel's names, and reads them back. It fails if the
// device does not have a feature or does not change it.
func (h *Handle) SetFeatures(dev string, want map[string]bool) error {
	return h.withEthtool(func(e ethtool) error {
		known, err := e.features(dev)
		if err != nil {
			return fmt.Errorf("read the features of %s: %w", dev, err)
		}
		for name, on := range want {
			if f, ok := known[name]; !ok {
				return fmt.Errorf("device %s has no feature %s%s", dev, name, advice.DidYouMean(name, slices.Sorted(maps.Keys(known))))
			} else if f.active == on {
				continue
			}
			if err := e.setFeatures(dev, known, map[string]bool{name: on}); err != nil {
				return fmt.Errorf("switch feature %s of %s: %w", name, dev, err)
			}
		}
		known, err = e.features(dev)
		for name, on := range want {
			if err == nil && known[name].active != on {
				err = fmt.Errorf("feature %s of %s cannot be changed: it is %s", name, dev, map[bool]string{true: "on", false: "off"}[!on])
			}
		}
		return err
	})
}
