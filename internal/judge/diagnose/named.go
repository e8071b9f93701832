package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Named is an existing Service or pod that the user asks to diagnose.
type Named struct {
	// Name includes the kind: "Service shop/cart", "pod shop/cart-1".
	Name string
	// Address is the address of the Service with its port; "" for a pod, and for a Service without an address. Node is the
	// pod's node.
	Address, Node string
	// Pods are the ready pods; for a pod only the pod itself. Unready are the others, with the reason.
	Pods    []Pod
	Unready []string
	// Policies are the NetworkPolicies that select one of the pods.
	Policies []string
	// Note explains failing connections to Address. Why is the reason if no connection is tried. Both may be "".
	Note, Why string
	// Backends has the results of connections; it is empty if none were tried.
	Backends []Backend
}

// Pod is a ready pod. Address includes the port.
type Pod struct{ Name, Node, Address string }

// judgeNamedTarget judges the target of --to. If only some of its pods accept connections, the rule backend covers it.
func judgeNamedTarget(e *Evidence) []Statement {
	n := e.Named
	switch {
	case n == nil:
		return clearStatement("no Service or pod was named")
	case n.Why != "":
		return unknownStatement("%s: %s", n.Name, n.Why)
	case len(n.Pods) == 0 && len(n.Unready) == 0:
		return markProven(faultStatement(Application, n.Name, "no pod is behind it"))
	case len(n.Pods) == 0:
		return markProven(faultStatement(Application, n.Name, "not ready: %s", strings.Join(n.Unready, ", ")))
	case len(n.Backends) == 0:
		return unknownStatement("%s: no connection was tried", n.Name)
	}
	silent := each.Where(n.Backends, Backend.isBad)
	pods := each.Where(silent, func(b Backend) bool { return b.Name != "" })
	saw := strings.Join(each.Of(silent, Backend.String), ", ")
	switch {
	case len(silent) == 0:
		saw = strings.Join(each.Of(n.Backends, Backend.String), ", ")
		if len(n.Unready) > 0 {
			saw += "; not ready: " + strings.Join(n.Unready, ", ")
		}
		return clearStatement("%s: %s", n.Name, saw)
	case len(pods) == 0 && n.Note != "":
		return markProven(faultStatement(Service, n.Name, "%s; all its pods answer; %s", saw, n.Note))
	case len(pods) == 0:
		return faultStatement(Service, n.Name, "%s; all its pods answer", saw)
	case len(pods) < len(n.Pods):
		return clearStatement("%s: some of its pods answer", n.Name)
	case !slices.ContainsFunc(pods, func(b Backend) bool { return b.Failed[netstate.Timeout] > 0 }):
		return markProven(faultStatement(Application, n.Name, "%s", saw)) // something answered for the pod
	case len(n.Policies) > 0:
		return unknownStatement("%s: %s; the prober may not be a client that its NetworkPolicies admit: %s", n.Name, saw, strings.Join(n.Policies, ", "))
	}
	return faultStatement(Service, n.Name, "%s", saw)
}

// isBad reports whether more than the share badBackend of the connections failed.
func (b Backend) isBad() bool {
	failed, _ := b.Failures()
	return float64(failed) > badBackend*float64(failed+len(b.Times))
}

// String describes the results of connections.
func (b Backend) String() string {
	name := "its address"
	if b.Name != "" {
		name = b.Name
	}
	if failed, why := b.Failures(); failed > 0 {
		return fmt.Sprintf("%s (%s) failed %d of %d connections (%s)", name, b.To, failed, failed+len(b.Times), why)
	}
	if len(b.Times) == 0 {
		return name + " was not tried"
	}
	return fmt.Sprintf("%s took %s (%s at least)", name, number.Counted(len(b.Times), "connection"), formatNanoseconds(float64(b.Times[0])))
}
