package attach

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TestRunCounter: the runs between Start and Read are counted, of one program among all; those before are not.
func TestRunCounter(t *testing.T) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "counted_runs", Type: ebpf.SocketFilter, License: "Dual BSD/GPL", Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, 1000), asm.Sub.Imm(asm.R1, 1).WithSymbol("again"), asm.JNE.Imm(asm.R1, 0, "again"), asm.Mov.Imm(asm.R0, 0), asm.Return(),
		},
	})
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run := func(times uint32) {
		t.Helper()
		if _, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: times}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := CountRuns()
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(7)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	run(1000)
	counts, err := c.Read()
	if err = errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	run(50)
	var found RunCount
	for _, x := range counts {
		if x.Name == "counted_runs" {
			found = x
		}
	}
	if found.Runs != 1000 || !(float64(found.Ns) > 1000*c.EmptyNs) || !(c.EmptyNs > 0) {
		t.Errorf("%+v, an empty program takes %.1f ns", found, c.EmptyNs)
	}
}
