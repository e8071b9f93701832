package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestMain makes the test binary be cnibench when a script calls it, with scripted agents in place of the lab. More
// tests run at a time than there are CPUs, because those with a lab wait most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil {
		panic(err)
	}
	pretend := func() {
		p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, openLab: raisePretence}
		os.Exit(p.main(p.parseProgramName(os.Args)))
	}
	commands["cnibench"], commands[pluginName], commands[completionName] = pretend, pretend, pretend
	testscript.Main(tidy{m}, commands)
}

// tidy is a run of tests that ends with afterwards, which removes what tests share.
type tidy struct{ *testing.M }

var afterwards []func()

func (t tidy) Run() int {
	code := t.M.Run()
	for _, f := range afterwards {
		f()
	}
	return code
}

// commands are what this binary is under another name.
var commands = map[string]func(){}

// TestScripts runs testdata/script: whole command lines with their output and exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:         "testdata/script",
		WorkdirRoot: t.TempDir(), // removed also where -run chooses some scripts
		Setup: func(e *testscript.Env) error {
			traces, err := filepath.Abs("../judge/itinerary/testdata")
			e.Setenv("TRACES", traces)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": wantCode,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// wantCode is the script command "code N cnibench ...": it runs the command line and wants this exit code.
func wantCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// pretence is an environment of scripted agents. The environment variable FAULT lets it go wrong.
type pretence struct{ plan plan.Plan }

func raisePretence(_ context.Context, p plan.Plan, say func(string, ...any)) (env.Environment, error) {
	say("raising %d profiles", len(p.Measured()))
	if os.Getenv("FAULT") == "raise" {
		return nil, advice.With(fmt.Errorf("the lab needs the right to make network namespaces"), "sudo cnibench, or unshare -Urnm cnibench")
	}
	return pretence{p}, nil
}

func (pretence) Facts(context.Context) (facts.Facts, error) { return facts.Facts{"kernel": "6.1"}, nil }
func (pretence) Conditions() outcome.Conditions             { return outcome.Conditions{} }
func (pretence) Close(context.Context) error                { return nil }

// VerifierLogs has one where FAULT asks for it.
func (pretence) VerifierLogs() map[string]string {
	if os.Getenv("FAULT") != "verifier" {
		return nil
	}
	return map[string]string{"cilium-native": "0: R1=ctx()\n1: (79) r0 = *(u64 *)(r10 +8)\ninvalid read from stack\n"}
}

func (e pretence) Profiles(context.Context) ([]result.Profile, error) {
	var list []result.Profile
	for _, name := range e.plan.Measured() {
		q := result.Profile{Name: name}
		if strings.HasPrefix(name.String(), "cilium") {
			q.Skipped = "not in the lab of this version"
		}
		list = append(list, q)
	}
	return list, nil
}

func (e pretence) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	profile := r.Variant.String()
	if profile == "macvlan" && r.Path.To == plan.Service {
		return control.Ends{}, &control.NotServedError{Profile: r.Variant, Path: r.Path.String(), Reason: "no kube-proxy on the way"}
	}
	start := controltest.Agent(func(q control.Prepare) (*sample.Observation, *control.Error) { return e.trial(profile, q) })
	at := func(end string) control.Endpoint {
		return control.Endpoint{Name: profile + "/" + end, Address: "10.0.0.1", ListenPort: 7000, Start: func(ctx context.Context) (io.ReadWriteCloser, error) { return start(ctx) }}
	}
	return control.Ends{Client: at("a"), Servers: []control.Endpoint{at("b")}}, nil
}

func (e pretence) At(plan.Variant) env.Site { return e }

// Follow returns what was recorded in a real lab, of flannel-vxlan whatever the variant is. TRACES is where it is.
func (e pretence) Follow(_ context.Context, r plan.Route, o journey.Options) (t journey.Trace, err error) {
	if _, err := e.Endpoints(context.Background(), r); err != nil {
		return t, err
	}
	if os.Getenv("FAULT") == r.Variant.String() {
		return t, advice.With(fmt.Errorf("this kernel has no BTF"), "another kernel")
	}
	b, err := os.ReadFile(filepath.Join(os.Getenv("TRACES"), "flannel-vxlan.json"))
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	t.Profile, t.Path, t.Workload = r.Variant, r.Path, o.Workload
	return t, err
}

// trial sees the same each time, and something slower under canal.
func (pretence) trial(profile string, q control.Prepare) (*sample.Observation, *control.Error) {
	switch {
	case os.Getenv("FAULT") == profile:
		return nil, &control.Error{Kind: "connection refused", Message: "10.0.0.1:7000: connection refused"}
	case os.Getenv("FAULT") == "interrupt" && profile == "canal" && q.Side == control.SideClient:
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Signal(os.Interrupt) != nil {
			return nil, &control.Error{Kind: "test", Message: "cannot interrupt myself"}
		}
		select {} // until the process ends
	}
	o := &sample.Observation{Side: q.Side, ElapsedNs: int64(q.Window), Operations: 10_000, BytesSent: 10_000, BytesReceived: 10_000}
	o.CPU = sample.CPUTime{ThreadsNs: int64(q.Window) / 2, ProcessNs: int64(q.Window) / 2}
	if profile == "canal" {
		o.Operations, o.BytesReceived = 5000, 5000
	}
	if q.Side == control.SideClient && q.Workload.Traits().Exchanges() {
		o.RTT = sample.NewHistogram()
		exchanges := int64(100)
		if os.Getenv("EXCHANGES") != "" { // enough for a 99th percentile
			exchanges = 2000
		}
		for i := range exchanges {
			o.RTT.Record(20_000 + 10*(i%100))
		}
	}
	return o, nil
}

// TestPlanFlagsNameFields checks the table of flags against the keys of a plan file, by which faults are renamed.
func TestPlanFlagsNameFields(t *testing.T) {
	const head = "apiVersion: cnibench/v1\nkind: Plan\n"
	for _, f := range planFlags() {
		src := head + f.Key + ": [[]]\n"
		if top, sub, ok := strings.Cut(f.Key, "."); ok {
			src = head + top + ": {" + sub + ": [[]]}\n"
		}
		_, err := plan.Parse("p", strings.NewReader(src))
		if err == nil || strings.Contains(err.Error(), "unknown key") {
			t.Errorf("--%s stands for %q, which a plan file does not have: %v", f.Flag, f.Key, err)
		}
	}
}
