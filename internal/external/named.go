package external

import (
	"errors"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// unsupportedForm is a form of output that is not supported, with the supported form to use instead.
type unsupportedForm struct {
	looks *pattern.Pattern
	what  string
	// instead is the advice on how to get a supported form, "" if only a CSV file can be imported.
	instead string
	// other is true for a file that is not a measurement itself. The advice then does not mention the CSV file.
	other bool
	// first is true for output that a supported format would match, too.
	first bool
}

// unsupportedForms are the known forms that are not supported. Those with first are tried before the formats, the others only
// if no format matches.
var unsupportedForms = []unsupportedForm{
	{looks: pattern.New(`(?m)^(?:Client connecting to|Server listening on) .*(?:TCP|UDP) port \d+\b|^\[ *(?:\d+|SUM)\] +\d+\.(?:\d|\d{4})- *\d+\.(?:\d|\d{4}) +sec `), what: "the output of iperf 2, which is not supported", instead: "measure by iperf3 -J", first: true},
	{looks: pattern.New(`(?m)^\d{14}(?:\.\d+)?,[0-9a-f.:]+,\d+,[0-9a-f.:]+,\d+,\d+,[\d.]+-[\d.]+,\d+,\d+`), what: "the CSV of iperf 2, which is not supported", instead: "measure by iperf3 -J"},
	{looks: pattern.New(`(?m)^Fortio \S+ running at `), what: "the text of fortio, of which only the JSON is supported", instead: "load with fortio load -json FILE"},
	{looks: pattern.New(`(?m)^(?:Bombarding http|Statistics +Avg +Stdev +Max\r?$)`), what: "the text of bombardier, of which only the JSON is supported", instead: "load with bombardier -o json -p r"},
	{looks: pattern.New(`(?m)^Value\(ms\) +Percentile +TotalCount|^Bucket +# +% +Histogram|^\d{19},\d{3},\d+,\d+,\d+,|^\{"attack":"`), what: "single requests or a histogram of vegeta, of which only the report is supported", instead: "vegeta report -type json"},
	{looks: pattern.New(`This is ApacheBench[^<]*<table`), what: "the HTML of ab -w, of which only the text is supported", instead: "load with ab without -w", first: true},
	{looks: pattern.New(`^Percentage served,Time in ms|^starttime\tseconds\tctime\t`), what: "the CSV or the gnuplot file of ab, of which only the text is supported", instead: "load with ab without -e and -g"},
	{looks: pattern.New(`(?m)^response-time,DNS\+dialup,DNS,`), what: "the CSV of hey, of which only the summary is supported", instead: "load with hey without -o csv"},
	{looks: pattern.New(`^\{"(?:type":"Metric"|metric":"\w+","type":"Point")|^metric_name,timestamp,metric_value`), what: "the single requests of k6, of which only the summary is supported", instead: "load with k6 run --summary-export FILE"},
	{looks: pattern.New(`(?m)^ *http_req_duration\.+:`), what: "the text of k6, of which only the JSON is supported", instead: "load with k6 run --summary-export FILE"},
	{looks: pattern.New(`(?m)^ *Success rate:\s|^request-start,DNS,`), what: "the text or the CSV of oha, of which only the JSON is supported", instead: "load with oha --output-format json", first: true},
	{looks: pattern.New(`(?:RDMA_(?:Write|Read)|Send) (?:BW|Latency|Bidirectional BW) Test`), what: "the output of perftest, which measures RDMA; no workload has that"},
	{looks: pattern.New(`(?m)^test was performed using the following parameters: --mps=`), what: "the log of single messages of sockperf, of which only what it prints is supported", instead: "give what sockperf printed beside it"},
	{looks: pattern.New(`(?m)^DNS Performance Testing Tool`), what: "the output of dnsperf; no workload asks a name server"},
	{looks: pattern.New(`(?m)^ *[\d.]+ MB / +[\d.]+ sec = +[\d.]+ Mbps|^megabytes=[\d.]+ real_seconds=`), what: "the output of nuttcp, which is not supported", instead: "measure by iperf3 -J"},
	{looks: pattern.New(`^PK\x03\x04[\s\S]{0,200}\[Content_Types\]`), what: "a spreadsheet"},
	{looks: pattern.New("^PK\x03\x04"), what: "a zip archive", instead: "unpack it and give its files", other: true},
	{looks: pattern.New(`(?m)^NTTTCP for |^<ntttcp[rs]? `), what: "the output of ntttcp, which is not supported", instead: "measure by iperf3 -J"},
	{looks: pattern.New(`(?m)^Ethr done,|^\[ *ID\] +Protocol +Interval +`), what: "the output of ethr, which is not supported", instead: "measure by iperf3 -J"},
	{looks: pattern.New(`"raw_values"[\s\S]*"x_values"|"x_values"[\s\S]*"raw_values"`), what: "a data file of flent, which is not supported", instead: "measure by netperf or iperf3 -J"},
	{looks: pattern.New(`(?m)xmt/rcv/%loss = |^\S+ +: \[\d+\], \d+ bytes, [\d.]+ ms|^\S+ : (?:[\d.]+|-)(?: (?:[\d.]+|-))*$|^\{"(?:resp|summary)": ?\{"host":`), what: "the output of fping, which is not supported", instead: "measure by ping"},
	{looks: pattern.New(`(?m)\bnetperf .*-P ?0\b`), what: "the output of netperf -P 0, whose rows do not say the test", instead: "measure without -P 0"},
	{looks: pattern.New(`(?m)^HPING `), what: "the output of hping3, which is not supported", instead: "measure by ping, or by netperf -t TCP_CRR"},
	{looks: pattern.New(`^Type,Name,Request Count,`), what: "the CSV of locust, which is not supported", instead: "load with oha or wrk"},
	{looks: pattern.New(`"latencyDistribution"[\s\S]*"percentage"`), what: "the JSON of ghz, which loads gRPC; no workload does"},
	{looks: pattern.New(`(?m)^====== [A-Z]+[\s\S]*requests completed in `), what: "the output of redis-benchmark; no workload asks Redis"},
	{looks: pattern.New(`(?m)^HOST: .*Loss% +Snt|^Mtr_Version,|^\s*"mtr": \{|\{"report": ?\{"mtr"`), what: "the output of mtr, which is not supported", instead: "measure by ping"},
	{looks: pattern.New(`^(?:Role|Type),Driver,Profile,`), what: "the CPU or the losses of k8s-netperf, of which only JSON and the rates of result-*.csv are supported", instead: "give result-*.csv, or run it with --json"},
	{looks: pattern.New(`(?m)Scenario +\| +Test +\| +Num Samples`), what: "the table of an old cilium connectivity perf, which does not say the path", instead: "measure with a newer one"},
	{looks: pattern.New(`(?m)^# (?:HELP|TYPE) [a-z_:]+ `), what: "metrics for Prometheus, which count since a program began and not over a test"},
	{looks: pattern.New(`(?m)^Pinging \S+ |^PING \S+ \([0-9a-f.:]+\)`), what: "the output of ping of Windows or in another language", instead: "measure by LC_ALL=C ping of Linux"},
	{looks: pattern.New(`RESULT TYPE +\|? *DRIVER +\|? *SCENARIO`), what: "the tables of k8s-netperf, of which only JSON and CSV are supported", instead: "run it with --json or --csv"},
	{looks: pattern.New(`(?m)^(?:Running \d+s test @ .*\n\d+ connections$)`), what: "the tables of autocannon, which is not supported", instead: "load with oha or wrk"},
	{looks: pattern.New(`(?m)^finished in [\d.]+s, [\d.]+ req/s,`), what: "the output of h2load, which is not supported", instead: "load with oha or wrk"},
	{looks: pattern.New(`(?m)^Transactions:\s+\d+ hits|^\{\s*"transactions":\s*\d+,\s*"availability":`), what: "the output of siege, which is not supported", instead: "load with oha or wrk"},
	{looks: pattern.New(`(?m)^summary [=+] +\d+ in `), what: "the output of JMeter, which is not supported"},
	{looks: pattern.New(`(?m)^(?:KVStore|KubeProxyReplacement|Cilium health daemon):\s`), what: "the output of cilium status: settings, and not a measurement", instead: "cnibench check --config FILE, which reads it, or cnibench cni detect", other: true},
	{looks: pattern.New(`(?m)^(?:Calico process is running|IPv[46] BGP status)`), what: "the output of calicoctl node status: a state, and not a measurement", instead: "cnibench cni detect, or cnibench check --config FILE with the cluster's manifests", other: true},
	{looks: pattern.New(`(?m)^apiVersion: *\S+[\s\S]*^kind: *\S+|^kind: *\S+[\s\S]*^apiVersion: *\S+`), what: "a document of Kubernetes, and not a measurement", instead: "cnibench check --config FILE", other: true},
}

// csvWay is the advice for numbers that no decoder reads.
const csvWay = `write its numbers into a CSV file (docs/reference/import.md): line 1 is "# cnibench-csv v1", line 2 "profile,path,workload,metric,value,unit", ` +
	`then a row for each number, such as "canal,pod-to-pod/cross-node,stream,goodput,9.4,Gbit/s"`

// unsupportedError returns an error that names the unsupported form of b, with advice; nil if the form of b is not known.
// If first is true, it tries only the forms whose field first is true.
func unsupportedError(b []byte, first bool) error {
	head := b[:min(len(b), 1<<20)]
	for _, r := range unsupportedForms {
		if first && !r.first || !r.looks.Match(head) {
			continue
		}
		way := csvWay
		switch {
		case r.other:
			way = r.instead
		case r.instead != "":
			way = r.instead + ", or " + csvWay
		}
		return advice.With(errors.New("it is "+r.what), way)
	}
	return nil
}
