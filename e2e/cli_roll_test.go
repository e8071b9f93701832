//go:build e2e

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/external/externaltest"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// rolled is a run whose backends are rolled: with a drain that outlasts kube-proxy's second, and without any.
var rolled = []string{"--paths", "pod-to-service/remote", "--baseline", "detected", "--no-twin", "--repetitions", "2", "--duration", "18s", "--warmup", "100ms", "--workloads",
	"http(backends=3,connection=close,roll,drain=2300ms),http(backends=3,connection=close,roll),http(backends=3,connection=close)"}

// TestCLIRoll: three backends go and come back while they serve. Who drains for long enough loses nothing, who does not loses
// requests until the nodes have learned of it, and where nothing is rolled nothing fails. At the end all are back.
func TestCLIRoll(t *testing.T) {
	p := startRun(t, rolled...)
	if n := len(p.fine(t)); n != 6 {
		t.Errorf("%d trials", n)
	}
	failures := map[string][]float64{}
	all, err := externaltest.Whole(p.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Type != result.TypeTrial {
			continue
		}
		if !r.Workload.Traits().Roll {
			if r.Metrics[metric.ErrorRate] > 0 || r.Metrics[metric.BackendShare+".min"] < 0.2 {
				t.Errorf("%s, beside those that are rolled: errors %v, shares from %v", r.Key(), r.Client.Errors, r.Metrics[metric.BackendShare+".min"])
			}
			continue
		}
		checkRolls(t, r)
		kind := "no drain"
		if r.Workload.Traits().Drain > 0 {
			kind = "drain"
		}
		failures[kind] = append(failures[kind], r.Metrics[metric.FailuresPerRoll])
	}
	t.Logf("failures for each backend: %v", failures)
	if len(failures["drain"]) != 2 || slices.Max(failures["drain"]) > slices.Min(failures["no drain"]) || slices.Min(failures["no drain"]) == 0 {
		t.Errorf("failures: %v", failures)
	}
}

// checkRolls wants every backend of a trial to have been out and back, and the nodes to have learned of both.
func checkRolls(t *testing.T, r result.Record) {
	t.Helper()
	if len(r.Server.Rolls) != 3 {
		t.Fatalf("%s: rolls %+v", r.Key(), r.Server.Rolls)
	}
	for _, one := range r.Server.Rolls {
		if !one.Returned || one.DrainNs < int64(r.Workload.Traits().Drain) {
			t.Errorf("%s: %+v", r.Key(), one)
		}
	}
	added, ok := r.Metrics[metric.NetworkProgramming+".added"]
	if !ok || added <= 0 {
		t.Errorf("%s: nobody knows when they were back: %+v", r.Key(), r.Server.Rolls)
	}
	removed, ok := r.Metrics[metric.NetworkProgramming+".removed"]
	if ok != (r.Workload.Traits().Drain > 0) {
		t.Errorf("%s: removed %v (%v): %+v", r.Key(), removed, ok, r.Server.Rolls)
	}
	t.Logf("%s: removed within %v, added within %v, errors %v", r.Key(), time.Duration(removed), time.Duration(added), r.Client.Errors)
}

// TestCLIRollIsRefused has an admission policy refuse that the labels of pods are changed. The trial has failed and names the
// pod, and what is not rolled is measured.
func TestCLIRollIsRefused(t *testing.T) {
	config := account(t, kube.Rights)
	refuse(t, subject(t, config), "pods", "request.operation == 'UPDATE'", "labels stay as they are")
	others, err := clientset(admin(t)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(others.Items) == 0 {
		t.Fatal("a cluster without pods", err)
	}
	inForce(t, config, "labels stay as they are", func(ctx context.Context, c *kube.Cluster) error {
		patch := []byte(`{"metadata":{"labels":{"x":"y"}}}`)
		_, err := clientset(c).CoreV1().Pods(others.Items[0].Namespace).Patch(ctx, others.Items[0].Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry.DryRun})
		return err
	})
	p := startRun(t, "--kubeconfig", config, "--paths", "pod-to-service/remote", "--baseline", "detected", "--no-twin", "--repetitions", "1",
		"--duration", "4s", "--workloads", "http(backends=2,connection=close,roll),http(backends=2,connection=close)")
	p.wantEnd(t, 3*time.Minute, 1, "roll: 0 of 2 backends were taken out of the Service and put back: change the labels of pod backend-", "labels stay as they are")
	finished, failed := p.trials(t)
	if len(finished) != 1 || len(failed) != 1 || finished[0].Workload.Traits().Roll || failed[0].Error.Kind != "roll" || failed[0].Metrics != nil {
		t.Errorf("finished %+v, failed %+v", finished, failed)
	}
	p.wantNothingLeft(t)
}
