package testbed

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// resolved runs dns over a path of a lab, and returns what the client and the servers saw.
func resolved(t *testing.T, l *lab.Lab, profile plan.Variant, path, workload string) (client, server *sample.Observation) {
	t.Helper()
	p, err := plan.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	w, ends, first, servers := agents(t, l, profile, p, workload)
	s := control.Sides{Client: first, Servers: servers}
	if err := s.Prepare(t.Context(), ends, control.Prepare{Workload: w, Warmup: 50 * time.Millisecond, Window: 500 * time.Millisecond, Setup: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if client, server, err = s.Run(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// TestNamesOnTheWire: names are resolved between pods and behind a Service of one and of two servers, over UDP and TCP; what
// the search list asks for is on the wire.
func TestNamesOnTheWire(t *testing.T) {
	l, err := lab.Up(t.Context(), plan.Variants("flannel-vxlan"), lab.Options{Backends: []int{2}, Program: []string{"/proc/self/exe", "agent"}})
	if err != nil {
		t.Skipf("no lab here: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := l.Instance(plan.VariantOf("flannel-vxlan")).Err; err != nil {
		t.Skipf("not in this lab: %v", err)
	}
	for _, x := range []struct {
		path, workload string
		queries        uint64
	}{
		{"pod-to-pod/cross-node", "dns", 2}, {"pod-to-pod/cross-node", "dns(tcp)", 2}, {"pod-to-service/remote", "dns", 2}, {"pod-to-service/remote", "dns(ndots=5,timeout=1s)", 8},
		{"pod-to-service/remote", "dns(tcp,flows=2)", 2}, {"pod-to-service/local", "dns(rate=300)", 2}, {"pod-to-service/remote", "dns(backends=2,flows=2)", 2},
	} {
		client, server := resolved(t, l, plan.VariantOf("flannel-vxlan"), x.path, x.workload)
		n := client.Names
		if n == nil || client.Operations == 0 || n.Queries < x.queries*client.Operations || n.Queries > x.queries*(client.Operations+20) || len(client.Errors) > 0 || server.Operations == 0 {
			t.Errorf("%s %s: %d resolutions, %+v, errors %v, %d answers", x.path, x.workload, client.Operations, n, client.Errors, server.Operations)
		}
	}
}

// TestLostAAAA: a program on the pod's device drops the answers with AAAA. Each resolution waits three timeouts, as that of
// the C library does, and has the address of the other answer.
func TestLostAAAA(t *testing.T) {
	l := raised(t, plan.Lab{}, plan.VariantOf("ptp"))
	if err := l.Instance(plan.VariantOf("ptp")).Err; err != nil {
		t.Skipf("not in this lab: %v", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		// Behind 14 bytes of Ethernet, 20 of IPv4, 8 of UDP and 12 of DNS stands www.example.com, in 17 bytes, and then the
		// type.
		asm.Mov.Imm(asm.R2, 14+20+8+12+17+1),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, 1),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "passes"),
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
		asm.JNE.Imm(asm.R1, 28, "passes"),
		asm.Mov.Imm(asm.R0, 2), // TC_ACT_SHOT
		asm.Return(),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("passes"),
		asm.Return(),
	}})
	if err != nil {
		t.Skipf("no BPF programs here: %v", err)
	}
	defer program.Close()
	at, err := attach.Device(l.Instance(plan.VariantOf("ptp")).Host("node-1/pod-1").NS, "eth0", attach.Ingress, program)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	client, _ := resolved(t, l, plan.VariantOf("ptp"), crossNode.String(), "dns(timeout=150ms,rate=20)")
	n := client.Names
	if least := time.Duration(client.RTT.Min()); client.Operations == 0 || n.Waited != client.Operations || len(client.Errors) > 0 || least < 450*time.Millisecond || least > 600*time.Millisecond {
		t.Errorf("%d resolutions, %+v, errors %v, the shortest took %v", client.Operations, n, client.Errors, least)
	}
	if each := float64(n.Queries) / float64(client.Operations); each != 6 {
		t.Errorf("%g queries each", each)
	}
}
