package load

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// sideVar makes the test binary one side of one trial, as an agent would be: it prints its port when it is prepared,
// runs at the first line of its input, prints what it saw and closes at the end of its input.
const sideVar = "CNIBENCH_LOAD_TEST_SIDE"

// seen is what a process prints.
type seen struct {
	Port        int                 `json:",omitempty"`
	Observation *sample.Observation `json:",omitempty"`
	Kind        string              `json:",omitempty"`
	// Allocated counts the allocations of the process in the window.
	Allocated allocated
}

func alone(options string) int {
	var o control.Prepare
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	say := json.NewEncoder(os.Stdout)
	input := bufio.NewReader(os.Stdin)
	t, err := Prepare(context.Background(), o)
	if err != nil {
		_ = say.Encode(seen{Kind: kindOf(err)})
		return 1
	}
	_ = say.Encode(seen{Port: t.Port()})
	if _, err := input.ReadString('\n'); err != nil {
		return 1
	}
	var s seen
	got, err := t.Run(context.Background(), s.Allocated.edge)
	s.Observation = got
	if err != nil {
		s.Kind = kindOf(err)
	}
	_ = say.Encode(s)
	_, _ = input.ReadString('\n')
	if err := t.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is one side of a trial in a process of its own.
type process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *json.Decoder
	port   int
}

// sideProcess starts one side; before is put in front of its command line.
func sideProcess(t *testing.T, o control.Prepare, before ...string) *process {
	t.Helper()
	needNamespace(t)
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(before, self)
	p := &process{cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env = append(os.Environ(), sideVar+"="+string(b), control.RuntimeVariable+"="+control.RuntimeSetting)
	p.cmd.Stderr = os.Stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.output = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A test that failed half-way leaves it running; one that ended it makes both fail, which is fine.
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	ready := p.read(t)
	if ready.Kind != "" {
		t.Fatalf("the process did not get ready: %s", ready.Kind)
	}
	p.port = ready.Port
	return p
}

func (p *process) run(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.input, "run\n"); err != nil {
		t.Fatal(err)
	}
}

func (p *process) read(t *testing.T) seen {
	t.Helper()
	var s seen
	if err := p.output.Decode(&s); err != nil {
		t.Fatalf("read from process: %v", err)
	}
	return s
}

// end lets the process close and waits for it.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
