package external

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// k8sRow is one scenario of k8s-netperf, as its JSON and its CSV alike have it. Numbers are means over Samples.
type k8sRow struct {
	Driver      string   `json:"driver"`
	Profile     string   `json:"profile"`
	HostNetwork bool     `json:"hostNetwork"`
	Service     bool     `json:"service"`
	Local       bool     `json:"local"`
	Virt        bool     `json:"virt"`
	External    bool     `json:"externalServer"`
	Parallelism int      `json:"parallelism"`
	Duration    int      `json:"duration"`
	Samples     int      `json:"samples"`
	MessageSize int      `json:"messageSize"`
	Burst       int      `json:"burst"`
	Throughput  *float64 `json:"throughput"`
	Latency     *float64 `json:"latency"`
	Unit        string   `json:"tputMetric"`
	LatencyUnit string   `json:"ltcyMetric"`
	Retransmits *float64 `json:"tcpRetransmits"`
	Loss        *float64 `json:"udpLossPercent"`
	// The networks besides the pod network.
	UDN      string `json:"udnInfo"`
	Bridge   string `json:"bridgeInfo"`
	SRIOV    string `json:"sriovInfo"`
	Macvlan  string `json:"macvlanInfo"`
	Localnet string `json:"localnetInfo"`

	Timestamp time.Time `json:"timestamp"`
	Version   string    `json:"toolVersion"`
	Metadata  struct {
		Kernel   string `json:"kernel"`
		MTU      int    `json:"mtu"`
		Platform string `json:"platform"`
		SDN      string `json:"sdnType"`
		K8s      string `json:"k8sVersion"`
	} `json:"metadata"`
}

func matchK8sNetperfJSON(b []byte) bool {
	return startsJSON(b) && bytes.Contains(b, []byte(`"tputMetric"`)) && bytes.Contains(b, []byte(`"hostNetwork"`))
}

// decodeK8sNetperfJSON reads k8s-netperf --json: a list of scenarios.
func decodeK8sNetperfJSON(b []byte) (Batch, error) {
	batch := Batch{Tool: "k8s-netperf", Environment: "kubernetes"}
	first := ""
	err := eachItem(b, func(r k8sRow) error {
		batch.Tool = strings.TrimSpace("k8s-netperf " + r.Version)
		batch.fact(facts.Kernel, r.Metadata.Kernel)
		batch.fact("platform", r.Metadata.Platform)
		batch.fact("kubernetes", r.Metadata.K8s)
		batch.fact("cluster.network", r.Metadata.SDN)
		if r.Metadata.MTU > 0 {
			batch.fact("cluster.mtu", strconv.Itoa(r.Metadata.MTU))
		}
		first = cmp.Or(first, r.Driver)
		return r.read(&batch, first)
	})
	return batch, err
}

func matchK8sNetperfCSV(b []byte) bool {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.Contains(line, []byte("Avg Throughput")) && bytes.Contains(line, []byte("Host Network"))
}

// decodeK8sNetperfCSV reads the result file of k8s-netperf --csv, whose columns grew with its versions.
func decodeK8sNetperfCSV(b []byte) (Batch, error) {
	if len(b) > maxCSV {
		return Batch{}, fmt.Errorf("it is larger than %d MiB", maxCSV>>20)
	}
	c := csv.NewReader(bytes.NewReader(b))
	c.FieldsPerRecord = -1
	titles, err := c.Read()
	if err != nil {
		return Batch{}, err
	}
	batch := Batch{Tool: "k8s-netperf", Environment: "kubernetes"}
	var fs faults
	first := ""
	for len(batch.Readings) < maxReadings {
		f, err := c.Read()
		if errors.Is(err, io.EOF) {
			return batch, fs.asError()
		}
		if err != nil {
			return Batch{}, err // it names its line
		}
		line, _ := c.FieldPos(0)
		if len(f) != len(titles) {
			fs.add(line, "%d fields where the header row has %d", len(f), len(titles))
			continue
		}
		row, err := k8sFields(titles, f)
		first = cmp.Or(first, row.Driver)
		if err == nil {
			err = row.read(&batch, first)
		}
		if err != nil {
			fs.add(line, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return Batch{}, fmt.Errorf("more than %d trials", maxReadings)
}

// k8sFields reads a row of the CSV.
func k8sFields(titles, fields []string) (k8sRow, error) {
	var r k8sRow
	var errs []error
	for i, title := range titles {
		s := strings.TrimSpace(fields[i])
		var err error
		switch title {
		case "Driver":
			r.Driver = s
		case "Profile":
			r.Profile = s
		case "Same node":
			r.Local, err = truth(s)
		case "Host Network":
			r.HostNetwork, err = truth(s)
		case "VM mode":
			r.Virt, err = truth(s)
		case "Service":
			r.Service, err = truth(s)
		case "External Server":
			r.External, err = truth(s)
		case "UDN Info":
			r.UDN = s
		case "Bridge Info":
			r.Bridge = s
		case "SR-IOV Info":
			r.SRIOV = s
		case "Macvlan Info":
			r.Macvlan = s
		case "Localnet Info":
			r.Localnet = s
		case "Duration":
			r.Duration, err = count(s)
		case "Parallelism":
			r.Parallelism, err = count(s)
		case "# of Samples":
			r.Samples, err = count(s)
		case "Message Size":
			r.MessageSize, err = count(s)
		case "Burst":
			r.Burst, err = count(s)
		case "Avg Throughput":
			r.Throughput, err = optional(s)
		case "Throughput Metric":
			r.Unit = s
		case "99%tile Observed Latency":
			r.Latency, err = optional(s)
		case "Latency Metric":
			r.LatencyUnit = s
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", title, err))
		}
	}
	return r, errors.Join(errs...)
}

// truth reads true or false.
func truth(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, fmt.Errorf("%s is neither true nor false", quoted(s))
	}
	return s == "true", nil
}

// optional reads a number that may be missing: empty, or NaN as Go writes it.
func optional(s string) (*float64, error) {
	if s == "" || s == "NaN" {
		return nil, nil
	}
	v, err := amount(s)
	return &v, err
}

// read makes a reading of a scenario. Rows of another driver than the first are another tool on the same cells.
func (r k8sRow) read(batch *Batch, driver string) error {
	what := fmt.Sprintf("%s by %s", r.Profile, r.Driver)
	switch {
	case r.Driver != driver:
		batch.leaveOut("what %s measured: another tool than %s on the same cells; give it a file of its own", r.Driver, driver)
		return nil
	case r.Virt:
		batch.leaveOut("%s between virtual machines, which are no path here", what)
		return nil
	case r.Burst > 0:
		batch.leaveOut("%s with %d requests under way at once, which is no workload here", what, r.Burst)
		return nil
	}
	path, ok := r.path()
	if !ok {
		batch.leaveOut("%s from a host-network pod to an external server, which is no path here", what)
		return nil
	}
	w, ok, err := r.workload()
	if err != nil {
		return err
	}
	if !ok {
		batch.leaveOut("scenario %s, which is no workload here", what)
		return nil
	}
	out := Reading{Profile: r.network(), Path: path, Workload: w, Started: r.Timestamp, Window: time.Duration(min(r.Duration, 1<<20)) * time.Second}
	if r.Samples > 1 {
		out.warn(Aggregated, "a mean of %d samples, which stands here as one repetition", r.Samples)
	}
	if err := r.numbers(batch, &out); err != nil {
		return err
	}
	batch.Readings = append(batch.Readings, out)
	return nil
}

// numbers puts the metrics. The tool writes 0 for what it could not average.
func (r k8sRow) numbers(batch *Batch, out *Reading) error {
	if r.Throughput == nil || *r.Throughput <= 0 {
		out.fail("error", "k8s-netperf has no throughput of it")
		return nil
	}
	switch r.Unit {
	case "Mb/s", "10^6bits/s":
		if out.Workload.Kind != plan.Stream {
			return fmt.Errorf("%s in %s", r.Profile, quoted(r.Unit))
		}
		out.put(metric.Goodput, *r.Throughput*1e6)
		r.faults(batch, out)
		batch.leaveOut("latencies of streams, which are the times of single send calls")
		return nil
	case "OP/s", "Trans/s":
		if out.Workload.Kind == plan.Stream {
			return fmt.Errorf("%s in %s", r.Profile, quoted(r.Unit))
		}
		out.put(metric.TransactionRate, *r.Throughput)
		if r.Latency != nil && (r.LatencyUnit == "usec" || r.LatencyUnit == "") {
			out.time(metric.RTT, "p99", *r.Latency*1e3)
		}
		return nil
	}
	return fmt.Errorf("unknown unit of throughput %s", quoted(r.Unit))
}

// faults puts retransmits and loss of a stream. A 0 may mean that there was nothing to average.
func (r k8sRow) faults(batch *Batch, out *Reading) {
	v := r.Retransmits
	if out.Workload.Protocol == plan.UDP {
		v = r.Loss
	}
	bytes := *r.Throughput * 1e6 / 8 * float64(r.Duration)
	switch {
	case v == nil:
	case *v <= 0:
		batch.leaveOut("zeros of retransmits and loss, which k8s-netperf also writes for what it did not count")
	case out.Workload.Protocol == plan.UDP && *v <= 100:
		out.put(metric.FrameLossRate, *v/100)
	case out.Workload.Protocol == plan.TCP && bytes > 0:
		out.put(metric.RetransmitsPerG, *v/(bytes/1e9))
		out.put(metric.Retransmits, *v)
	}
}

// path maps the scenario's flags to ours.
func (r k8sRow) path() (plan.Path, bool) {
	p := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	if r.HostNetwork {
		p.From, p.To = plan.Host, plan.Host
	}
	switch {
	case r.External:
		return plan.Path{From: plan.Pod, To: plan.External}, !r.HostNetwork
	case r.Service && r.Local:
		p.To, p.Locality = plan.Service, plan.Local
	case r.Service:
		p.To, p.Locality = plan.Service, plan.Remote
	case r.Local:
		p.Locality = plan.SameNode
	}
	return p, slices.Contains(plan.Paths, p)
}

// network names the pods' second network, if the scenario ran on one.
func (r k8sRow) network() string {
	for _, n := range []struct{ info, name string }{
		{r.UDN, "udn"}, {r.Bridge, "bridge"}, {r.SRIOV, "sriov"}, {r.Macvlan, "macvlan"}, {r.Localnet, "localnet"},
	} {
		if n.info != "" {
			return n.name
		}
	}
	return ""
}

// workload maps the scenario's netperf name; false if there is none.
func (r k8sRow) workload() (plan.Workload, bool, error) {
	w := plan.Workload{Flows: r.Parallelism}
	switch r.Profile {
	case "TCP_STREAM":
		w.Kind, w.MessageSize = plan.Stream, r.MessageSize
	case "UDP_STREAM":
		w.Kind, w.Protocol, w.MessageSize = plan.Stream, plan.UDP, r.MessageSize
	case "TCP_RR":
		w.Kind, w.RequestSize, w.ResponseSize = plan.RR, r.MessageSize, r.MessageSize
	case "UDP_RR":
		w.Kind, w.Protocol, w.RequestSize, w.ResponseSize = plan.RR, plan.UDP, r.MessageSize, r.MessageSize
	case "TCP_CRR":
		w.Kind, w.Close, w.RequestSize, w.ResponseSize = plan.CRR, "fin", r.MessageSize, r.MessageSize
	default:
		return w, false, nil
	}
	w = w.Normalize()
	return w, true, w.Validate()
}
