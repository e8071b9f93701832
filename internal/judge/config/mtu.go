package config

import (
	"fmt"
	"strings"
)

// usualMTU is the assumed MTU of an unknown underlay.
const usualMTU = 1500

// Bytes of encapsulations over IPv4. Calico's and flannel's WireGuard differ: flannel reserves the room for IPv6.
const (
	vxlanBytes     = 50
	ipipBytes      = 20
	longerIPv6     = 20
	calicoWG       = 60
	ciliumIPsec    = 77
	ciliumWG       = 95
	ciliumWGBefore = 80 // up to 1.19
)

// layerOf is one encapsulation around a packet.
type layerOf struct {
	name  string
	bytes int
}

// ciliumLayers returns the encapsulations that Cilium's routes leave room for.
func (c ciliumState) ciliumLayers() []layerOf {
	var layers []layerOf
	tunnel := vxlanBytes
	if c.usesIPv6Underlay() {
		tunnel += longerIPv6
	}
	if c.usesTunnel() && (c.encryption != "wireguard" || c.minor >= 14) { // before, WireGuard's room was for both
		layers = append(layers, layerOf{c.tunnel, tunnel})
	}
	switch {
	case c.encryption == "ipsec":
		layers = append(layers, layerOf{"IPsec", ciliumIPsec})
	case c.encryption == "wireguard" && c.minor >= 20:
		layers = append(layers, layerOf{"WireGuard", ciliumWG})
	case c.encryption == "wireguard":
		layers = append(layers, layerOf{"WireGuard", ciliumWGBefore})
	}
	return layers
}

// remainingMTU returns the bytes that remain of an MTU inside layers, and what is subtracted: "50 for VXLAN and 77 for
// IPsec".
func remainingMTU(mtu int, layers []layerOf) (int, string) {
	var parts []string
	for _, l := range layers {
		mtu -= l.bytes
		parts = append(parts, fmt.Sprintf("%d for %s", l.bytes, l.name))
	}
	return mtu, strings.Join(parts, " and ")
}

// judgeCiliumMTU judges the MTU setting, which must be the underlay's. It shows the MTU of routes between pods that
// follows from it, and reports what encryption between nodes leaves.
func (j *judge) judgeCiliumMTU(c ciliumState) {
	g := c.at("mtu")
	j.judgeUnderlayMTU(g)
	base := g.number()
	by := g.by
	if base == 0 {
		base, by = j.known.Underlay, "the underlay's MTU"
	}
	if layers := c.ciliumLayers(); base > 0 && len(layers) > 0 {
		route, why := remainingMTU(base, layers)
		j.showSetting(cilium, RouteMTU, fmt.Sprint(route), Forced, fmt.Sprintf("%d (%s) less %s", base, by, why))
	}
	if e := c.at("encrypt-node"); e.isOn() && c.encryption == "wireguard" {
		room := ciliumWGBefore
		if c.minor >= 20 {
			room = ciliumWG
		}
		saw := fmt.Sprintf("encrypt-node: true: WireGuard's device has %d bytes less than the NIC", room)
		if base > 0 {
			saw = fmt.Sprintf("encrypt-node: true: WireGuard's device has an MTU of %d, the NIC %d", base-room, base)
		}
		j.addFinding("node-encryption", e, "%s", saw)
	}
}

// judgeUnderlayMTU judges a setting that should be the underlay's MTU. If the real MTU is unknown, it reports a value
// that is common for pods.
func (j *judge) judgeUnderlayMTU(g value) {
	mtu := g.number()
	switch {
	case mtu == 0 || !g.isGiven():
	case j.known.Underlay == 0 && podsOften[mtu]:
		j.addFinding("mtu-is-underlay", g, "%s: %d is what pods often have over an underlay of %d: a guess; --underlay-mtu %d says that it is the NICs'",
			g.path, mtu, usualUnderlayMTU(mtu), mtu)
	case j.known.Underlay == 0:
	case mtu > j.known.Underlay:
		j.addFinding("mtu-too-large", g, "%s: %d, and the underlay has %d", g.path, mtu, j.known.Underlay)
	case mtu < j.known.Underlay:
		j.addFinding("mtu-is-underlay", g, "%s: %d, and the underlay has %d: the encapsulation is subtracted from %d", g.path, mtu, j.known.Underlay, mtu)
	}
}

// podsOften are common MTUs of pods over underlays of 1500 and 9000 bytes.
var podsOften = map[int]bool{1480: true, 1450: true, 1440: true, 1430: true, 1420: true, 1405: true, 8950: true, 8951: true, 8920: true}

// usualUnderlayMTU returns the usual MTU of an underlay over which pods have this MTU: 1500 or 9000 bytes.
func usualUnderlayMTU(mtu int) int {
	if mtu > usualMTU {
		return 9000
	}
	return usualMTU
}

// judgePodMTU reports a pod MTU that exceeds what an encapsulation leaves of the underlay's. If the underlay's MTU is
// unknown, it assumes 1500, unless the pods' MTU is larger: then it shows the underlay MTU that is required.
func (j *judge) judgePodMTU(component string, g value, layers []layerOf) {
	mtu := g.number()
	if mtu == 0 || !g.isGiven() || len(layers) == 0 {
		return
	}
	underlay, whose := j.known.Underlay, "the underlay's %d bytes"
	if underlay == 0 {
		underlay, whose = usualMTU, "the usual %d bytes (--underlay-mtu gives the underlay's own)"
	}
	most, why := remainingMTU(underlay, layers)
	if mtu > most && (j.known.Underlay > 0 || mtu <= usualMTU) {
		j.addFinding("mtu-too-large", g, "%s: %d, and %s leave %d of "+whose, g.path, mtu, why, most, underlay)
	} else if j.known.Underlay == 0 {
		j.showSetting(component, RequiredMTU, fmt.Sprint(mtu+underlay-most), Forced, fmt.Sprintf("%d (%s) and %s", mtu, g.by, why))
	}
}
