package outputs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// k8sRow is one scenario of k8s-netperf, in its JSON and in its CSV. Numbers are means over Samples; 0 may mean that a
// number was not counted.
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
	// The names of networks in addition to the pod network, "" for none.
	UDN      string `json:"udnInfo"`
	Bridge   string `json:"bridgeInfo"`
	SRIOV    string `json:"sriovInfo"`
	Macvlan  string `json:"macvlanInfo"`
	Localnet string `json:"localnetInfo"`
	// flags are the flags without a field, such as acrossAZ.
	flags []string

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

func matchK8s(b []byte) bool {
	return matchK8sCSV(b) || adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"tputMetric"`)) && bytes.Contains(b, []byte(`"hostNetwork"`))
}

// decodeK8s reads k8s-netperf --json, a list of scenarios, or its CSV.
func decodeK8s(b []byte) (adapter.Batch, error) {
	if matchK8sCSV(b) {
		return decodeK8sCSV(b)
	}
	batch := adapter.Batch{Tool: "k8s-netperf", Environment: "kubernetes"}
	drivers := map[string]string{}
	err := adapter.Documents(b, func(raw json.RawMessage) error { return readK8sItem(raw, &batch, drivers) })
	return batch, err
}

// readK8sItem adds the reading of a scenario to batch. raw is an item of the JSON, or a row of the CSV with the same keys.
// drivers has the driver of each case that was read. It fails if a value has the wrong type.
func readK8sItem(raw json.RawMessage, batch *adapter.Batch, drivers map[string]string) error {
	var r k8sRow
	if err := json.Unmarshal(raw, &r); err != nil {
		return adapter.Typed(err)
	}
	for _, flag := range adapter.Unread(raw, "hostNetwork", "service", "local", "virt", "externalServer") {
		if strings.HasSuffix(flag, "=true") || strings.HasPrefix(flag, "pair=") {
			r.flags = append(r.flags, flag)
		}
	}
	batch.Tool = strings.TrimSpace("k8s-netperf " + r.Version)
	batch.Fact(facts.Kernel, r.Metadata.Kernel)
	batch.Fact("platform", r.Metadata.Platform)
	batch.Fact("kubernetes", r.Metadata.K8s)
	batch.Fact("cluster.network", r.Metadata.SDN)
	if r.Metadata.MTU > 0 {
		batch.Fact("cluster.mtu", strconv.Itoa(r.Metadata.MTU))
	}
	return r.addReading(batch, drivers)
}

// tcpAndUDP are the drivers that send the protocol of a profile's name. ib_write_bw uses RDMA for every profile.
var tcpAndUDP = []string{"", "netperf", "iperf", "iperf3", "uperf"}

// addReading adds the reading of a scenario to batch, unless the scenario is not supported. drivers has the driver of each
// case that was read. If another driver has measured the same case already, it leaves this scenario out: drivers are
// different tools.
func (r k8sRow) addReading(batch *adapter.Batch, drivers map[string]string) error {
	what := fmt.Sprintf("%s by %s", r.Profile, r.Driver)
	switch {
	case !slices.Contains(tcpAndUDP, strings.ToLower(r.Driver)):
		batch.LeaveOut("%s: this driver does not send TCP or UDP through sockets, whatever the profile's name says", what)
		return nil
	case r.Virt:
		batch.LeaveOut("%s between virtual machines: not a supported path", what)
		return nil
	case r.Burst > 0:
		batch.LeaveOut("%s with %d requests under way at once: not a supported workload", what, r.Burst)
		return nil
	}
	path, ok := r.path()
	if !ok {
		batch.LeaveOut("%s from a host-network pod to an external server: not a supported path", what)
		return nil
	}
	w, ok, err := r.workload()
	if err != nil {
		return err
	}
	if !ok {
		batch.LeaveOut("scenario %s: not a supported workload", what)
		return nil
	}
	cell := fmt.Sprint(r.secondNetwork(), path, w, r.flags)
	if driver, taken := drivers[cell]; taken && driver != r.Driver {
		batch.LeaveOut("%s on %s: %s measured the same before; put it into its own file", what, path, driver)
		return nil
	}
	drivers[cell] = r.Driver
	out := adapter.Reading{Profile: r.secondNetwork(), Path: path, Workload: w, Started: r.Timestamp, Window: time.Duration(min(r.Duration, 1<<20)) * time.Second}
	out.Condition(r.flags...)
	if r.Samples > 1 {
		out.Warn(adapter.Aggregated, "a mean of %d samples, counted as one repetition", r.Samples)
	}
	if err := r.setNumbers(batch, &out); err != nil {
		return err
	}
	batch.Readings = append(batch.Readings, out)
	return nil
}

// setNumbers sets the metrics of a scenario. Without a throughput, or with 0, which the tool writes if it has no sample, out
// becomes a failed trial.
func (r k8sRow) setNumbers(batch *adapter.Batch, out *adapter.Reading) error {
	if r.Throughput == nil || *r.Throughput <= 0 {
		out.Fail("error", "k8s-netperf reported no throughput")
		return nil
	}
	switch r.Unit {
	case "Mb/s", "10^6bits/s":
		if out.Workload.Traits().Exchanges() {
			return fmt.Errorf("%s in %s", r.Profile, adapter.Quoted(r.Unit))
		}
		out.Put(metric.Goodput, *r.Throughput*1e6)
		r.setLossMetrics(batch, out)
		batch.LeaveOut("latencies of streams, which are the times of single send calls")
		return nil
	case "OP/s", "Trans/s":
		if !out.Workload.Traits().Exchanges() {
			return fmt.Errorf("%s in %s", r.Profile, adapter.Quoted(r.Unit))
		}
		out.Put(metric.TransactionRate, *r.Throughput)
		if r.Latency != nil && (r.LatencyUnit == "usec" || r.LatencyUnit == "") {
			out.Time(metric.RTT, "p99", *r.Latency*1e3)
		}
		return nil
	}
	return fmt.Errorf("unknown unit of throughput %s", adapter.Quoted(r.Unit))
}

// setLossMetrics sets the retransmits or the loss of a stream. It leaves out a 0, which the tool also writes if it has no
// sample.
func (r k8sRow) setLossMetrics(batch *adapter.Batch, out *adapter.Reading) {
	v := r.Retransmits
	if out.Workload.Traits().Protocol == plan.UDP {
		v = r.Loss
	}
	bytes := *r.Throughput * 1e6 / 8 * float64(r.Duration)
	switch {
	case v == nil:
	case *v <= 0:
		batch.LeaveOut("zeros of retransmits and loss, which k8s-netperf also writes for what it did not count")
	case out.Workload.Traits().Protocol == plan.UDP && *v <= 100:
		out.Put(metric.FrameLossRate, *v/100)
	case out.Workload.Traits().Protocol == plan.TCP && bytes > 0:
		out.Retransmitted(*v, bytes)
	}
}

// path returns the path of the scenario from its flags; false if it is not supported.
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

// secondNetwork returns the kind of the pods' second network, "" if the scenario did not run on one.
func (r k8sRow) secondNetwork() string {
	for _, n := range []struct{ info, name string }{
		{r.UDN, "udn"}, {r.Bridge, "bridge"}, {r.SRIOV, "sriov"}, {r.Macvlan, "macvlan"}, {r.Localnet, "localnet"},
	} {
		if n.info != "" {
			return n.name
		}
	}
	return ""
}

// workload returns the workload of the scenario from its netperf name; false if it is not supported.
func (r k8sRow) workload() (plan.Workload, bool, error) {
	spec, ok := adapter.NetperfTests[r.Profile]
	if !ok {
		return plan.Workload{}, false, nil
	}
	w := adapter.Sized(spec, adapter.Sizes{Flows: r.Parallelism, Message: r.MessageSize, Request: r.MessageSize, Response: r.MessageSize}).Normalize()
	return w, true, w.Validate()
}
