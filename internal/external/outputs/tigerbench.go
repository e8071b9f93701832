package outputs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func matchTiger(b []byte) bool {
	return adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"TestKind"`)) && bytes.Contains(b, []byte(`"ClusterDetails"`))
}

// tigerResult is one test of tiger-bench: qperf or iperf3 on a cluster with Calico. It summarizes iterations; readings
// have the mean. Latencies of qperf are half of a round trip.
type tigerResult struct {
	Config struct {
		TestKind                          string
		NumPolicies, NumServices, NumPods int
		HostNetwork                       bool
		Duration                          int
		CalicoNodeCPULimit                string
	} `json:"config"`
	Details struct {
		NodeKernel, NodeArch, K8SVersion, Product, CalicoVersion, Dataplane, Encapsulation string
		IPFamily, CNIOption                                                                string
		NumNodes                                                                           int
		WireguardEnabled                                                                   bool
	} `json:"ClusterDetails"`
	Qperf    *tigerSummary `json:"thruput-latency"`
	OldQperf *tigerSummary `json:"qperf"`
	Iperf    *tigerSummary `json:"iperf"`
}

// tigerSummary has the numbers of a test by its path.
type tigerSummary struct{ Latency, Throughput, Retries map[string]tigerRow }

type tigerRow struct {
	Mean   float64 `json:"avg"`
	Unit   string  `json:"unit"`
	Points int     `json:"datapoints"`
}

// tigerFlows is the number of flows that iperf3 has in tiger-bench.
const tigerFlows = 8

func decodeTiger(b []byte) (adapter.Batch, error) {
	batch := adapter.Batch{Tool: "tiger-bench", Environment: "kubernetes"}
	err := adapter.Documents(b, func(r tigerResult) error {
		d := r.Details
		batch.Fact(facts.Kernel, d.NodeKernel)
		batch.Fact(facts.Architecture, d.NodeArch)
		batch.Fact("kubernetes", d.K8SVersion)
		batch.Fact("cluster.network", strings.TrimSpace(d.Product+" "+d.CalicoVersion))
		return r.addReadings(&batch)
	})
	return batch, err
}

// addReadings adds the readings of a test to batch.
func (r tigerResult) addReadings(batch *adapter.Batch) error {
	qperf := r.Qperf
	if qperf == nil {
		qperf = r.OldQperf
	}
	stream := plan.Workload{Spec: plan.Stream{MessageSize: 64 << 10}}.Normalize()
	switch {
	case qperf != nil:
		if err := r.addRows(batch, qperf.Throughput, stream, nil); err != nil {
			return err
		}
		return r.addRows(batch, qperf.Latency, plan.Workload{Spec: plan.RR{}}.Normalize(), nil)
	case r.Iperf != nil:
		return r.addRows(batch, r.Iperf.Throughput, plan.Workload{Spec: plan.Stream{Flows: tigerFlows}}.Normalize(), r.Iperf.Retries)
	}
	batch.LeaveOut("a test of kind %s: not a supported workload", adapter.Quoted(r.Config.TestKind))
	return nil
}

// profile returns a name for the cluster's network, since tiger-bench changes dataplane and encapsulation between tests. It
// returns "" if the name would be invalid.
func (r tigerResult) profile() string {
	parts := []string{r.Details.Product, r.Details.Dataplane, r.Details.Encapsulation}
	if cni := r.Details.CNIOption; cni != "" && !strings.EqualFold(cni, "Calico") { // Calico has the policies alone
		parts = append(parts, "on", strings.ReplaceAll(cni, " ", "-"))
	}
	if r.Details.WireguardEnabled {
		parts = append(parts, "wireguard")
	}
	name := strings.ToLower(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-"))
	if adapter.CheckProfile(name) != nil {
		return ""
	}
	return name
}

// addRows adds a reading of w for each path that has a number. again has the retransmitted segments by path.
func (r tigerResult) addRows(batch *adapter.Batch, rows map[string]tigerRow, w plan.Workload, again map[string]tigerRow) error {
	for _, name := range []string{"pod-pod", "pod-svc-pod", "ext-svc-pod"} {
		n, ok := rows[name]
		if !ok || n.Mean == 0 && n.Unit == "" {
			continue
		}
		path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
		switch {
		case name == "ext-svc-pod":
			batch.LeaveOut("%s of a client outside: whether by NodePort or LoadBalancer is not said", w)
			continue
		case name == "pod-svc-pod":
			path.To, path.Locality = plan.Service, plan.Remote
		case r.Config.HostNetwork:
			path.To = plan.Host
		}
		if r.Config.HostNetwork {
			path.From = plan.Host
		}
		out := adapter.Reading{Profile: r.profile(), Path: path, Workload: w, Window: time.Duration(min(max(r.Config.Duration, 0), 1<<20)) * time.Second}
		r.recordConditions(&out)
		if n.Points > 1 {
			out.Warn(adapter.Aggregated, "a mean of %d iterations, counted as one repetition", n.Points)
		}
		if err := n.recordMean(&out, again[name]); err != nil {
			return fmt.Errorf("%s, %s: %w", r.Config.TestKind, name, err)
		}
		batch.Readings = append(batch.Readings, out)
	}
	return nil
}

// recordConditions records the settings of the cluster as conditions, such as its number of policies.
func (r tigerResult) recordConditions(out *adapter.Reading) {
	for name, n := range map[string]int{"policies": r.Config.NumPolicies, "services": r.Config.NumServices, "pods": r.Config.NumPods, "nodes": r.Details.NumNodes} {
		if n > 0 {
			out.Condition(fmt.Sprintf("%s=%d", name, n))
		}
	}
	if strings.EqualFold(r.Details.IPFamily, "ipv6") {
		out.Condition("family=6")
	}
	if limit := r.Config.CalicoNodeCPULimit; limit != "" {
		out.Condition("calico-node.cpu-limit=" + limit)
	}
}

// recordMean records the mean of a row. again has the number of retransmitted segments. It fails if the unit of the row
// is unknown.
func (n tigerRow) recordMean(out *adapter.Reading, again tigerRow) error {
	switch n.Unit {
	case "us":
		if n.Mean <= 0 {
			out.Fail("error", "tiger-bench reported no latency")
			return nil
		}
		out.Time(metric.RTT, "mean", 2e3*n.Mean)
		out.Put(metric.TransactionRate, 1e6/(2*n.Mean))
	case "Mb/sec", "Mbits/sec", "": // a path of iperf3 lacks its unit
		if !out.Workload.Traits().Bulk() {
			return fmt.Errorf("unknown unit %s", adapter.Quoted(n.Unit))
		}
		out.Received(n.Mean * 1e6)
		if bytes := n.Mean * 1e6 / 8 * out.Window.Seconds(); again.Mean > 0 && bytes > 0 {
			out.Retransmitted(again.Mean, bytes)
		}
	default:
		return fmt.Errorf("unknown unit %s", adapter.Quoted(n.Unit))
	}
	return nil
}
