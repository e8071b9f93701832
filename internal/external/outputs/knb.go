package outputs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/iperf3"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// knbFile is a result of knb (k8s-bench-suite): iperf3 on a cluster. Its JSON and YAML have these fields. Shell
// commands assemble its JSON. If the JSON is invalid, with a trailing comma or a missing number, it is still valid
// YAML.
type knbFile struct {
	Metadata struct {
		Name    string `yaml:"name"`
		Version string `yaml:"version"`
		Date    string `yaml:"date"`
		Server  string `yaml:"server-node"`
		Client  string `yaml:"client-node"`
		Buffer  string `yaml:"socket-buffer-size"`
		// OnHost says whether the pods of client and server were on the host's network.
		OnHost struct{ Client, Server bool } `yaml:"-"`
		// More are iperf3's arguments in addition to knb's own.
		More string `yaml:"-"`
	} `yaml:"metadata"`
	Data struct {
		CPU     string              `yaml:"cpu"`
		Kernel  string              `yaml:"kernel"`
		K8s     string              `yaml:"k8s-version"`
		MTU     string              `yaml:"mtu"`
		Pod     map[string]*knbTest `yaml:"pod2pod"`
		Service map[string]*knbTest `yaml:"pod2svc"`
	} `yaml:"data"`
}

// knbTest is one test. Bandwidth is a text in Mbit/s. logged is the reading from the test's log, which has more; nil if
// there is no log.
type knbTest struct {
	Bandwidth yaml.Node `yaml:"bandwidth"`
	logged    *adapter.Reading
}

func matchKnb(b []byte) bool {
	return matchKnbText(b) || bytes.Contains(b, []byte("server-node")) && bytes.Contains(b, []byte("pod2")) && bytes.Contains(b, []byte("bandwidth"))
}

// decodeKnb reads knb -o json, -o yaml and -o text.
func decodeKnb(b []byte) (adapter.Batch, error) {
	if matchKnbText(b) {
		return decodeKnbText(b)
	}
	// A parsed YAML document takes many times the memory of its text; knb writes three KiB.
	if len(b) > mostKnb {
		return adapter.Batch{}, fmt.Errorf("it is larger than %d KiB", mostKnb>>10)
	}
	var f knbFile
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&f); err != nil {
		return adapter.Batch{}, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return adapter.Batch{}, errors.New("it holds several results: put each into its own file")
	}
	return f.batch()
}

// mostKnb bounds a result of knb in bytes.
const mostKnb = 1 << 20

// knbProtocols are the protocols that knb tests on each kind of path, in the order of its tests.
var knbProtocols = []plan.Protocol{plan.TCP, plan.UDP}

// batch converts a result into readings.
func (f *knbFile) batch() (adapter.Batch, error) {
	b := adapter.Batch{Tool: strings.TrimSpace("knb " + f.Metadata.Version), Title: f.Metadata.Name, Environment: "kubernetes", Warmup: time.Second}
	if f.Metadata.Server == "" || f.Metadata.Client == "" {
		return adapter.Batch{}, errors.New("its server-node or client-node is missing")
	}
	if t, err := time.Parse(time.DateTime, f.Metadata.Date); err == nil {
		b.Created = t
	}
	b.Fact(facts.Kernel, f.Data.Kernel)
	b.Fact(facts.CPUModel, f.Data.CPU)
	b.Fact("kubernetes", f.Data.K8s)
	b.Fact("cluster.mtu", f.Data.MTU)
	b.Fact("socket_buffer", f.Metadata.Buffer)
	near, far := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	if f.Metadata.Server == f.Metadata.Client {
		near.Locality, far.Locality = plan.SameNode, plan.Local
	}
	ends := f.Metadata.OnHost
	near, nearKnown := hostNetworkPath(near, ends.Client, ends.Server)
	far, farKnown := hostNetworkPath(far, ends.Client, ends.Server)
	for _, group := range []struct {
		path  plan.Path
		known bool
		tests map[string]*knbTest
	}{{near, nearKnown, f.Data.Pod}, {far, farKnown, f.Data.Service}} {
		if !group.known && len(group.tests) > 0 {
			b.LeaveOut("tests of %s: the archive says that a pod of it was on the host's network, which is not a supported path", group.path)
			continue
		}
		for name := range group.tests {
			if !slices.Contains(knbProtocols, plan.Protocol(name)) {
				b.LeaveOut("test %s: a command of the user's", adapter.Quoted(name))
			}
		}
		for _, p := range knbProtocols {
			t := group.tests[string(p)]
			if t == nil {
				continue
			}
			r, err := t.reading(p)
			if err != nil {
				return adapter.Batch{}, fmt.Errorf("%s, %s: %w", group.path, p, err)
			}
			r.Path, r.Started = group.path, b.Created
			if f.Metadata.More != "" {
				r.Condition("arguments=" + f.Metadata.More)
			}
			b.Readings = append(b.Readings, r)
		}
	}
	b.LeaveOut("CPU and memory, which are of the whole nodes and of a window that begins before the test does")
	return b, nil
}

// hostNetworkPath returns p with the client, the server or both on the hosts' network; false if that path is not supported.
func hostNetworkPath(p plan.Path, client, server bool) (plan.Path, bool) {
	if client {
		p.From = plan.Host
	}
	if server && p.To == plan.Pod {
		p.To = plan.Host
	}
	return p, slices.Contains(plan.Paths, p)
}

// reading returns the reading of one test: that of its log, or one with the bandwidth.
func (t *knbTest) reading(p plan.Protocol) (adapter.Reading, error) {
	if t.logged != nil {
		return *t.logged, nil
	}
	r := adapter.Reading{Workload: plan.Workload{Spec: plan.Stream{Protocol: p}}.Normalize()}
	r.Warn(adapter.Assumed, "knb names neither the message size nor the congestion control; assumed: the defaults")
	err := setKnbBandwidth(&r, "knb", t.Bandwidth.Value, 1e6)
	return r, err
}

// setKnbBandwidth sets the goodput of r from text, a number in multiples of unit. unit is in bit/s. If text is empty or
// null, it turns r into a failed trial. It fails if text is not a number from 0.
func setKnbBandwidth(r *adapter.Reading, tool, text string, unit float64) error {
	text = strings.TrimSpace(text)
	if slices.Contains([]string{"", "~", "null"}, strings.ToLower(text)) {
		r.Fail("error", tool+" reported no bandwidth")
		return nil
	}
	v, err := adapter.Amount(text)
	r.Received(v * unit)
	return err
}

// matchKnbArchive reports whether b is compressed by gzip, as the archives of knb are.
func matchKnbArchive(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b}) }

// mostKnbMembers bounds the files of an archive; knb writes about thirty.
const mostKnbMembers = 1000

// decodeKnbArchive reads a .knbdata archive. knb runs its file env as a script; here it is only text. The archive is
// refused unless env has the usual form and all files are plain files in one directory.
func decodeKnbArchive(b []byte) (adapter.Batch, error) {
	files, err := knbMembers(b)
	if err != nil {
		return adapter.Batch{}, err
	}
	env, err := knbEnv(files["env"])
	if err != nil {
		return adapter.Batch{}, err
	}
	f := knbFile{}
	f.Metadata.Name, f.Metadata.Version, f.Metadata.Date = env["BENCHMARK_RUN_NAME"], env["VERSION"], env["BENCHMARK_DATE"]
	f.Metadata.Server, f.Metadata.Client, f.Metadata.Buffer = env["SERVER_NODE"], env["CLIENT_NODE"], env["SOCKET_BUFFER_SIZE"]
	f.Metadata.OnHost.Client, f.Metadata.OnHost.Server = env["HOST_NETWORK_CLIENT"] == "true", env["HOST_NETWORK_SERVER"] == "true"
	f.Metadata.More = env["ADD_CMD"]
	text := func(name string) string { return strings.TrimSpace(string(files[name])) }
	f.Data.CPU, f.Data.Kernel, f.Data.K8s, f.Data.MTU = text("cpu"), text("kernel"), text("k8s-version"), text("mtu")
	f.Data.Pod, f.Data.Service = map[string]*knbTest{}, map[string]*knbTest{}
	for _, p := range knbProtocols {
		upper := strings.ToUpper(string(p))
		for suffix, group := range map[string]map[string]*knbTest{"P2P": f.Data.Pod, "P2S": f.Data.Service} {
			pod := env["CLIENT_"+upper+"_"+suffix+"_POD_NAME"]
			if pod == "" {
				continue
			}
			t := &knbTest{}
			t.Bandwidth.Value = text(pod + ".bw")
			if log, ok := files[pod+".log"]; ok {
				t.logged = knbLogReading(log, p)
			}
			group[string(p)] = t
		}
	}
	return f.batch()
}

// knbLogReading returns the reading in the iperf3 log of a test. It returns nil unless the log has exactly one run, over
// protocol p.
func knbLogReading(log []byte, p plan.Protocol) *adapter.Reading {
	b, err := iperf3.DecodeText(log)
	if err != nil || len(b.Readings) != 1 {
		return nil
	}
	r := b.Readings[0]
	if r.Workload.Spec == nil {
		r.Workload = plan.Workload{Spec: plan.Stream{Protocol: p}}.Normalize()
	}
	if r.Workload.Traits().Protocol != p {
		return nil
	}
	r.Unpaced() // knb says -b 0
	return &r
}

var knbSetting = pattern.New("^([A-Z][A-Z0-9_]*)=\"([^\"$`\\\\]*)\"$")

// knbEnv parses the settings NAME="text" of the file env. It fails if b is nil, or if a line has another form.
func knbEnv(b []byte) (map[string]string, error) {
	if b == nil {
		return nil, advice.With(errors.New("the archive has no file env: it is not a knb archive"), "unpack it and give its files")
	}
	env := map[string]string{}
	var fs adapter.Faults
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := knbSetting.FindStringSubmatch(line)
		if m == nil {
			fs.Add(number, "of env is not NAME=\"text\" (env is read as text): %s", adapter.Quoted(line))
			continue
		}
		env[m[1]] = m[2]
	}
	return env, fs.Err()
}

// knbMembers unpacks a compressed tar archive and returns its files by name. It fails if a member is not a plain file in one
// folder, or if the members are too many or too large.
func knbMembers(b []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the archive: %w", err)
	}
	limited := &io.LimitedReader{R: z, N: adapter.MaxInput}
	t := tar.NewReader(limited)
	files := map[string][]byte{}
	for {
		h, err := t.Next()
		end := errors.Is(err, io.EOF)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(t)
		}
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("the archive unpacks to more than %d MiB", adapter.MaxInput>>20)
		case end:
			return files, nil
		case err != nil:
			return nil, fmt.Errorf("cannot unpack the archive: %w", err)
		}
		name := path.Clean(h.Name)
		_, twice := files[name]
		switch {
		case h.Typeflag == tar.TypeDir && name == ".":
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("the archive holds %s, which is not a regular file", adapter.Quoted(h.Name))
		case strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, "."):
			return nil, fmt.Errorf("the archive holds %s, outside its own folder or below it", adapter.Quoted(h.Name))
		case len(files) >= mostKnbMembers:
			return nil, fmt.Errorf("the archive holds more than %d files", mostKnbMembers)
		case twice:
			return nil, fmt.Errorf("the archive holds %s twice", adapter.Quoted(h.Name))
		}
		files[name] = body
	}
}
