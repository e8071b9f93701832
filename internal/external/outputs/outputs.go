// Package outputs reads the output of tools that never send for us: benchmarks of clusters, and load generators. wrk and
// hey, which do send, are here because all load generators for HTTP share a reader.
package outputs

import "github.com/cnibench/cnibench/internal/external/adapter"

// Suites are the benchmarks of clusters, which run iperf3, netperf, qperf or uperf in pods.
var Suites = adapter.Tool{Formats: []adapter.Format{
	{Name: "knb-data", About: "a .knbdata archive of knb", Match: matchKnbArchive, Decode: decodeKnbArchive},
	{Name: "knb", About: "knb -o json, -o yaml, -o text", Match: matchKnb, Decode: decodeKnb},
	{Name: "cni-benchmark", About: "a results folder of InfraBuilder's benchmark-k8s-cni-2024-01", Folder: readKnbFolder},
	{Name: "k8s-netperf", About: "k8s-netperf --json, and the result-*.csv of --csv", Match: matchK8s, Decode: decodeK8s},
	{Name: "cilium-perf", About: "cilium connectivity perf: its tables, or the report of --report-dir", Match: matchCilium, Decode: decodeCilium},
	{Name: "tiger-bench", About: "the results.json of tiger-bench", Match: matchTiger, Decode: decodeTiger},
	{Name: "perf-tests", About: "the netperf.csv of kubernetes/perf-tests", Match: matchPerfTests, Decode: decodePerfTests},
}}

// Generators are load generators for HTTP, whose report is a document or a table, and also qperf and uperf.
var Generators = adapter.Tool{Formats: []adapter.Format{
	{Name: "fortio", About: "the JSON of fortio load -json", Match: matchFortio, Decode: decodeFortio},
	{Name: "vegeta", About: "vegeta report, as text or -type json", Match: matchVegeta, Decode: decodeVegeta},
	{Name: "k6", About: "k6 run --summary-export, or the JSON of handleSummary", Match: matchK6, Decode: decodeK6},
	{Name: "oha", About: "oha --output-format json (before 1.5: -j)", Match: matchOha, Decode: decodeOha},
	{Name: "bombardier", About: "bombardier -o json -p r", Match: matchBombardier, Decode: decodeBombardier},
	{Name: "ab", About: "what ab (ApacheBench) prints", Match: matchAb, Decode: ab.Decode},
	{Name: "qperf", About: "what qperf prints (tcp_bw, tcp_lat, udp_bw, udp_lat)", Match: matchQperf, Decode: decodeQperf},
	{Name: "uperf", About: "what uperf prints of a profile with stream in its name", Match: matchUperf, Decode: uperfText.Decode},
}}
