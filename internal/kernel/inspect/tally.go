package inspect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// Protocols and ports that identify a wrapping.
const (
	protocolGRE = 47
	protocolESP = 50
	geneve      = 6081
)

// wireguard are the ports of flannel and Calico (51820, 51821 for IPv6), and of Cilium.
var wireguard = []uint16{51820, 51821, 51871}

// tally counts frames by how they are wrapped.
type tally struct {
	port           uint16
	marked, sealed map[netstate.Wrapping]int
}

func (t *tally) add(f *capture.Frame) {
	if f.IP == nil {
		return
	}
	w := netstate.Wrapping{Source: f.IP.Source.String(), Destination: f.IP.Destination.String()}
	switch {
	case f.Marked:
		w.Kind, w.Port, w.VNI = t.kind(f)
		t.marked[w]++
	case f.IP.Protocol == protocolESP:
		w.Kind = netstate.ESP
		t.sealed[w]++
	case f.UDP != nil && slices.Contains(wireguard, f.UDP.DestinationPort):
		w.Kind, w.Port = netstate.WireGuard, f.UDP.DestinationPort
		t.sealed[w]++
	}
}

// kind says what is around a mark that was seen.
func (t *tally) kind(f *capture.Frame) (kind string, port uint16, vni uint32) {
	switch {
	case f.VXLAN != nil:
		return netstate.VXLAN, f.UDP.DestinationPort, f.VXLAN.VNI
	case f.Inner != nil:
		return netstate.IPIP, 0, 0
	case f.IP.Protocol == protocolGRE:
		return netstate.GRE, 0, 0
	case f.UDP != nil && f.UDP.DestinationPort == geneve:
		return netstate.Geneve, geneve, 0
	case f.UDP != nil && t.port != 0 && f.UDP.DestinationPort != t.port && f.UDP.SourcePort != t.port:
		return netstate.UDP, f.UDP.DestinationPort, 0
	}
	return netstate.Bare, 0, 0
}

// sorted lists what was counted, most frames first.
func sorted(counted map[netstate.Wrapping]int) []netstate.Wrapping {
	var list []netstate.Wrapping
	for w, n := range counted {
		w.Frames = n
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b netstate.Wrapping) int {
		return cmp.Or(b.Frames-a.Frames, strings.Compare(a.Kind, b.Kind), strings.Compare(a.Source, b.Source), strings.Compare(a.Destination, b.Destination), int(a.VNI)-int(b.VNI))
	})
	return list
}
