package lab

import (
	"bytes"
	"fmt"
	"io"

	"github.com/cnibench/cnibench/internal/dataplane"
)

// Draw writes the topology as text: one line for each namespace, below its parent, then the Services.
func (s instanceSpec) Draw(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", s.Name, s.Profile.Summary)
	fmt.Fprintf(&b, "%s %v, MTU %d, %s NIC\n", s.Switch.Name, s.Switch.Addr, s.Lab.MTU, s.Lab.NIC)
	fmt.Fprintf(&b, "├─ %s %v\n", s.External.Name, s.External.Addr)
	for i, n := range s.Nodes {
		branch, bar := "├─", "│ "
		if i == len(s.Nodes)-1 {
			branch, bar = "└─", "  "
		}
		fmt.Fprintf(&b, "%s %s\n", branch, nodeText(n))
		for j, p := range n.Pods {
			twig := "├─"
			if j == len(n.Pods)-1 {
				twig = "└─"
			}
			fmt.Fprintf(&b, "%s %s %s\n", bar, twig, s.podText(n, p))
		}
	}
	for _, svc := range s.Services {
		fmt.Fprintf(&b, "%s %v:%d", svc.Name, svc.VIP, svc.Port)
		if svc.NodePort != 0 {
			fmt.Fprintf(&b, ", node port %d", svc.NodePort)
		}
		if svc.Balanced.IsValid() {
			fmt.Fprintf(&b, ", load balancer %v at %s", svc.Balanced, s.Nodes[s.announcerIndex()].Name)
		}
		for k, r := range svc.Backends {
			sep := " ─►"
			if k > 0 {
				sep = ","
			}
			fmt.Fprintf(&b, "%s %s:%d", sep, s.Nodes[r.Node].Pods[r.Pod].Name, svc.TargetPort)
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

func nodeText(n dataplane.Node) string {
	text := fmt.Sprintf("%s %v", n.Name, n.Addr)
	if n.PodCIDR.IsValid() {
		text += fmt.Sprintf(", pods %v", n.PodCIDR)
	}
	for _, d := range n.Interfaces {
		text += fmt.Sprintf(", %s %v", d.Name, d.Addr)
	}
	switch t := n.Tunnel; {
	case t.Device == "":
	case t.Port == 0:
		text += fmt.Sprintf(", %s %v MTU %d", t.Device, t.Addr, t.MTU)
	case t.VNI == 0 && t.MAC == nil: // neither Ethernet nor VNI
		text += fmt.Sprintf(", %s %v UDP %d MTU %d", t.Device, t.Addr, t.Port, t.MTU)
	case t.VNI == 0:
		text += fmt.Sprintf(", %s %v VNI by packet UDP %d MTU %d", t.Device, t.Addr, t.Port, t.MTU)
	default:
		text += fmt.Sprintf(", %s %v VNI %d UDP %d MTU %d", t.Device, t.Addr, t.VNI, t.Port, t.MTU)
	}
	return text
}

func (s instanceSpec) podText(n dataplane.Node, p dataplane.Pod) string {
	_, switched := s.dataplane.(dataplane.Switched)
	switch {
	case p.HostNetwork:
		return p.Name + " on the node's network"
	case switched:
		return fmt.Sprintf("%s %v MTU %d, on the switch", p.Name, p.Addr, p.MTU)
	case p.HostDevice == "":
		return fmt.Sprintf("%s %v MTU %d", p.Name, p.Addr, p.MTU)
	}
	text := fmt.Sprintf("%s %v MTU %d, %s on the node", p.Name, p.Addr, p.MTU, p.HostDevice)
	if b, ok := dataplane.BranchOf(n.Interfaces, p.Addr.Addr()); ok {
		text += ", " + b.Name + " on the trunk"
	}
	return text
}
