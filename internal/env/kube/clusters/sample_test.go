package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// posted returns samplers on the nodes a and b whose program is play, and what their pods may.
func posted(t *testing.T, play func(pod string, d *json.Decoder, e *json.Encoder) (words string)) (*samplers, []*corev1.Pod) {
	t.Helper()
	client := apitest.NewClientset()
	var pods []*corev1.Pod
	client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		p := a.(k8stesting.CreateAction).GetObject().(*corev1.Pod)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		p.Spec.NodeName = p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		pods = append(pods, p)
		return false, nil, nil
	})
	stream := func(_ context.Context, c detect.ContainerRef, argv []string, o remotecommand.StreamOptions) error {
		if !slices.Equal(argv, control.SamplerArgs) {
			t.Errorf("ran %q", argv)
		}
		_, err := io.WriteString(o.Stderr, play(c.Pod, json.NewDecoder(o.Stdin), json.NewEncoder(o.Stdout)))
		return err
	}
	post, err := detect.Post(t.Context(), detect.Clients{Kube: client.Client, Stream: stream}, detect.LookoutOptions{Run: "r", Image: "x", Nodes: []string{"a", "b"}, Sampling: true})
	if err != nil {
		t.Fatal(err)
	}
	return &samplers{post: post, turns: map[plan.Route]int{}}, pods
}

// sampling plays a sampler with one stack in a network namespace of its node and one in the switch.
func sampling(pod string, d *json.Decoder, e *json.Encoder) string {
	_ = e.Encode(control.SamplerAnswer{Machine: "m"})
	for {
		var ask control.SamplerAsk
		if d.Decode(&ask) != nil {
			return ""
		}
		var a control.SamplerAnswer
		if w := ask.Window; w != nil {
			inode := map[string]string{"node-1": "11", "node-2": "22"}[pod]
			a.Stacks, a.Spaces = &sample.Stacks{Event: "cpu-clock", Lost: 1}, map[string][]uint64{"node-1": {11}, "node-2": {22}}[pod]
			for end, threads := range w.Ends {
				for range threads {
					a.Stacks.Add(0, sample.Counted{Samples: 1, Weight: 1}, end, "main")
				}
			}
			// The namespace of the other node: on one machine a task works for both.
			a.Stacks.Add(1, sample.Counted{Samples: 1, Weight: 1}, control.SpaceRoot+map[string]string{"11": "22", "22": "11"}[inode], "br_forward")
			a.Stacks.Add(1, sample.Counted{Samples: 1, Weight: 1}, control.SpaceRoot+"33", "br_forward")
		}
		_ = e.Encode(a)
	}
}

// TestSampleNodes: what both nodes saw is one set of stacks, and a namespace that neither has is the switch.
func TestSampleNodes(t *testing.T) {
	s, pods := posted(t, sampling)
	for _, p := range pods {
		if rights := p.Spec.Containers[0].SecurityContext.Capabilities.Add; !p.Spec.HostPID || !slices.Contains(rights, "SYS_PTRACE") {
			t.Errorf("pod %s: hostPID %v, %v", p.Name, p.Spec.HostPID, rights)
		}
	}
	r := &recorder{server: 1}
	for _, node := range []string{"a", "b"} {
		x, err := s.startSampler(node, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		r.on = append(r.on, x)
	}
	if err := r.sendStart(); err != nil {
		t.Fatal(err)
	}
	seen := &sample.Observation{Placed: sample.Placed{Threads: []sample.Thread{{ID: 1}}}, Intervals: []sample.Interval{{EndNs: 1}, {EndNs: 2}}}
	recorded, err := r.finishSampling(seen, seen)
	if err != nil {
		t.Fatal(err)
	}
	all, got := recorded.Stacks, map[string]int{}
	for i := range all.Counts {
		for frame, n := range all.Of(i) {
			got[strings.Join(all.Stack(frame), " ")] += n.Samples
		}
	}
	want := map[string]int{"client main": 1, "server main": 1, "node a br_forward": 1, "node b br_forward": 1, "switch br_forward": 2}
	if all.Lost != 2 || len(got) != len(want) {
		t.Errorf("lost %d, %v", all.Lost, got)
	}
	for stack, n := range want {
		if got[stack] != n {
			t.Errorf("%s: %d, want %d", stack, got[stack], n)
		}
	}
	if _, err := s.startSampler("c", time.Minute); err == nil || !strings.Contains(err.Error(), "no sampler runs on node c") {
		t.Error(err)
	}
}

// TestCountNodes: runs of BPF programs on two machines are added up; a sampler that counts nothing is an error.
func TestCountNodes(t *testing.T) {
	for _, empty := range []bool{false, true} {
		s, _ := posted(t, func(pod string, d *json.Decoder, e *json.Encoder) string {
			_ = e.Encode(control.SamplerAnswer{Machine: pod})
			for {
				var ask control.SamplerAsk
				if d.Decode(&ask) != nil {
					return ""
				}
				a := control.SamplerAnswer{}
				if ask.Window != nil && !empty {
					a.Programs = &sample.Programs{BeganNs: -5, EmptyNs: 20, List: []sample.Program{{Name: "from_netdev", Runs: 7, Ns: 700}, {Name: pod, Runs: 1, Ns: 50}}}
				}
				_ = e.Encode(a)
			}
		})
		r := &recorder{server: 1}
		for _, node := range []string{"a", "b"} {
			x, err := s.startSampler(node, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			r.on = append(r.on, x)
		}
		if err := errors.Join(r.sendBegin(control.SamplerBegin{Programs: true}), r.sendStart()); err != nil {
			t.Fatal(err)
		}
		got, err := r.finishCounting(&sample.Observation{Machine: "1"}, &sample.Observation{Machine: "2"})
		if empty {
			if err == nil || !strings.Contains(err.Error(), "sampler on node a: no programs") {
				t.Error(err)
			}
			continue
		}
		want := sample.Programs{BeganNs: -5, EmptyNs: 20, List: []sample.Program{{Name: "from_netdev", Runs: 14, Ns: 1400}, {Name: "node-1", Runs: 1, Ns: 50}, {Name: "node-2", Runs: 1, Ns: 50}}}
		if err != nil || !reflect.DeepEqual(*got.Programs, want) {
			t.Errorf("%+v, %v", got.Programs, err)
		}
	}
}

// TestSamplerFails: a sampler that ends, or refuses, is an error with its node and its words.
func TestSamplerFails(t *testing.T) {
	for want, play := range map[string]func(string, *json.Decoder, *json.Encoder) string{
		"sampler on node a: exec format error": func(string, *json.Decoder, *json.Encoder) string { return "exec format error\n" },
		"sampler on node a: no right to sample the CPU": func(_ string, _ *json.Decoder, e *json.Encoder) string {
			_ = e.Encode(control.SamplerAnswer{Error: "no right to sample the CPU"})
			return ""
		},
		"sampler on node a: stacks: 1 numbers of frames": func(_ string, _ *json.Decoder, e *json.Encoder) string {
			_ = e.Encode(control.SamplerAnswer{Stacks: &sample.Stacks{Frames: []int32{1}}})
			return ""
		},
	} {
		s, _ := posted(t, play)
		if _, err := s.startSampler("a", time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
