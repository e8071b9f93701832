package outputs

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func matchKnbText(b []byte) bool {
	return bytes.Contains(b, []byte("Benchmark Results")) && knbGenerator.Match(b)
}

var (
	knbGenerator   = pattern.New(`(?m)^[ \t]*Generator[ \t]*: *knb`)
	knbTextSetting = pattern.New(`^([A-Z][A-Za-z0-9 ]*?) *: *(.*)$`)
	// knbOwnName matches the name that knb gives a run without --name.
	knbOwnName       = pattern.New(`^knb-\d+$`)
	knbTextBandwidth = pattern.New(`^bandwidth = (\S*) *Mbit/s$`)
)

// knbTextRun is a result of knb as text, the form that people paste.
type knbTextRun struct {
	file  knbFile
	tests map[string]*knbTest
	// protocol is the protocol of the current test, "" outside of a test.
	protocol plan.Protocol
	begun    bool
}

// decodeKnbText reads knb -o text, of one run or of several.
func decodeKnbText(b []byte) (adapter.Batch, error) {
	var all adapter.Batch
	run := &knbTextRun{}
	var names []string // of the run of each reading
	end := func() error {
		if !run.begun {
			return nil
		}
		one, err := run.file.batch()
		if err != nil {
			return err
		}
		if len(one.Readings) == 0 {
			return errors.New("it ends before its numbers: the output is cut off")
		}
		all.Join(one)
		for range one.Readings {
			names = append(names, knbOwnName.ReplaceAllString(one.Title, ""))
		}
		return nil
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "Benchmark Results" {
			if err := end(); err != nil {
				return adapter.Batch{}, err
			}
			run = &knbTextRun{begun: true}
		}
		run.readLine(line)
	}
	err := end()
	for i := range names {
		if names[i] != "" && slices.ContainsFunc(names, func(other string) bool { return other != names[i] }) {
			all.Readings[i].Condition("name=" + names[i])
		}
	}
	return all, err
}

// readLine reads one line.
func (r *knbTextRun) readLine(line string) {
	d, m := &r.file.Data, &r.file.Metadata
	group := func(tests *map[string]*knbTest) {
		*tests = map[string]*knbTest{}
		r.tests, r.protocol = *tests, ""
	}
	switch line {
	case "Idle :":
		r.tests, r.protocol = nil, ""
		return
	case "Pod to pod :":
		group(&d.Pod)
		return
	case "Pod to Service :":
		group(&d.Service)
		return
	case "TCP :", "UDP :", "CUSTOM :":
		r.protocol = plan.Protocol(strings.ToLower(strings.TrimSuffix(line, " :")))
		return
	}
	if found := knbTextBandwidth.FindStringSubmatch(line); found != nil && r.tests != nil && r.protocol != "" {
		t := &knbTest{}
		t.Bandwidth.Value = found[1]
		r.tests[string(r.protocol)] = t
		return
	}
	found := knbTextSetting.FindStringSubmatch(line)
	if found == nil {
		return
	}
	value := found[2]
	switch found[1] {
	case "Name":
		m.Name = value
	case "Date":
		m.Date = strings.TrimSuffix(value, " UTC")
	case "Version":
		m.Version = value
	case "Server":
		m.Server = value
	case "Client":
		m.Client = value
	case "Srv hostNetwork":
		m.OnHost.Server = value == "true"
	case "Clt hostNetwork":
		m.OnHost.Client = value == "true"
	case "UDP Socket size":
		m.Buffer = value
	case "Discovered CPU":
		d.CPU = value
	case "Discovered Kernel":
		d.Kernel = value
	case "Discovered k8s version":
		d.K8s = value
	case "Discovered MTU":
		d.MTU = value
	}
}
