package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// slowly is an API server with nodes, as the transport to it. Each answer takes 20 to 50 ms.
type slowly struct {
	nodes corev1.NodeList
	// throttled is how many requests there are to one that is refused for a second; 0 for no refusal.
	throttled int
	mu        sync.Mutex
	pods      map[string][]corev1.Pod
	// asked counts the requests, now those under way, and most is the largest number of them.
	asked, now, most int
}

// wait lasts as long as an answer and reports whether it is a refusal.
func (s *slowly) wait() (refused bool) {
	s.mu.Lock()
	s.asked++
	s.now++
	s.most = max(s.most, s.now)
	n := s.asked
	s.mu.Unlock()
	time.Sleep(time.Duration(20+n%31) * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	return s.throttled > 0 && n%s.throttled == 0
}

// RoundTrip returns an answer of the server.
func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	var out any
	err := error(apierrors.NewTooManyRequests("the server is busy", 1))
	if !s.wait() {
		out, err = s.answer(r)
	}
	code, header := http.StatusOK, http.Header{"Content-Type": {"application/json"}}
	if status, ok := err.(apierrors.APIStatus); ok {
		out, code, err = status.Status(), int(status.Status().Code), nil
		header.Set("Retry-After", "1")
	}
	text, wrong := json.Marshal(out)
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, errors.Join(err, wrong)
}

func (s *slowly) answer(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	switch what := r.Method + " " + parts[len(parts)-1]; {
	case what == "GET nodes":
		return s.nodes, nil
	case what == "GET pods":
		return corev1.PodList{Items: s.pods[parts[1]]}, nil
	case what == "POST namespaces":
		var ns corev1.Namespace
		return &ns, json.NewDecoder(r.Body).Decode(&ns)
	case what == "POST pods":
		var p corev1.Pod
		err := json.NewDecoder(r.Body).Decode(&p)
		runs(&p, len(s.pods[parts[1]]))
		s.pods[parts[1]] = append(s.pods[parts[1]], p)
		return p, err
	case r.Method == http.MethodDelete:
		delete(s.pods, parts[1])
		return metav1.Status{Status: metav1.StatusSuccess}, nil
	}
	return nil, apierrors.NewNotFound(podResource, r.URL.Path)
}

// TestThousandSlowAnswers: with an API server that is slow, and with one that also throttles, pods on 1,000 nodes come
// within the wait for pods. The requests under way stay few.
func TestThousandSlowAnswers(t *testing.T) {
	nodes := meshNodes(1000)
	for name, throttled := range map[string]int{"slow": 0, "throttles": 20} {
		synctest.Test(t, func(t *testing.T) {
			o := meshOptions(mesh.All)
			o.Ready = defaultReady
			w, c := newWorld(t, o)
			w.execs = make(chan string, 4000)
			s := &slowly{nodes: corev1.NodeList{Items: nodes}, throttled: throttled, pods: map[string][]corev1.Pod{}}
			var err error
			if c.client, err = api.New(&rest.Config{Host: "http://here", Transport: s, QPS: qps, Burst: burst}); err != nil {
				t.Fatal(err)
			}
			c.exec = func(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error {
				s.wait()
				return w.exec(ctx, pod, argv, o)
			}
			began := time.Now()
			if err := c.Up(t.Context()); err != nil {
				t.Fatal(name, err)
			}
			t.Logf("%s: a run begins after %s, with %d requests, %d at once", name, time.Since(began), s.asked, s.most)
			for _, n := range c.place.members {
				if why := c.place.mesh.absenceOf(n).why; why != "" {
					t.Errorf("%s: %s is away: %s", name, n, why)
				}
			}
			if len(c.pods) != 2000 || s.most > requestsAtOnce || time.Since(began) > defaultReady {
				t.Errorf("%s: %d pods, %d requests at once, %s", name, len(c.pods), s.most, time.Since(began))
			}
			if err := c.Close(t.Context()); err != nil || len(s.pods) > 0 {
				t.Errorf("%s: %v, pods are left in %d namespaces", name, err, len(s.pods))
			}
		})
	}
}

// ended returns a status of a container that ended by itself. The runtime writes why into the log.
func ended(code int32, reason, log string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Containers[0].TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
			log = ""
		}
		p.Status.Phase, p.Status.Conditions = corev1.PodFailed, nil
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: log}}}}
	}
}

// TestOtherArchitecture: a node that the image does not run on is left out with the reason, and not tried again and
// again.
func TestOtherArchitecture(t *testing.T) {
	const noMatch = `rpc error: code = NotFound desc = failed to pull and unpack image "cnibench.local/cnibench:1": no match for platform in manifest: not found`
	for want, become := range map[string]func(*corev1.Pod){
		"ImagePullBackOff: Back-off pulling image \"x\": ErrImagePull: " + noMatch: waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: `+noMatch),
		"ErrImagePull: " + noMatch:                                                              waiting("ErrImagePull", noMatch),
		"ended with code 255: exec /cnibench: exec format error":                                ended(255, "Error", "exec /cnibench: exec format error\n"),
		"ended with code 128 (StartError): failed to create containerd task: exec format error": ended(128, "StartError", "failed to create containerd task: exec format error"),
		"RunContainerError: failed to create containerd task: exec format error":                waiting("RunContainerError", "failed to create containerd task: exec format error"),
	} {
		synctest.Test(t, func(t *testing.T) {
			var said []string
			o := meshOptions(mesh.All)
			o.Ready, o.Say = defaultReady, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
			w, c := newWorld(t, o, meshNodes(3)...)
			made := 0
			w.become = func(p *corev1.Pod) {
				if made++; p.Spec.NodeName == "n2" {
					become(p)
				}
			}
			if err := c.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(said, "\n"); !strings.Contains(all, "node n2 is away: pod host-member-2 on node n2: ") || !strings.Contains(all, want) {
				t.Errorf("%s is not in\n%s", want, all)
			}
			m := Mesh{c}
			for range 5 {
				if node, why := m.Away(t.Context(), mesh.Pair{From: "n1", To: "n2"}, true); node != "n2" || !strings.Contains(why, want) {
					t.Errorf("%s: %q: %s", want, node, why)
				}
				time.Sleep(askAgain)
			}
			m.Await(t.Context())
			if made != 6 {
				t.Errorf("%s: %d pods were made", want, made)
			}
			r := plan.Route{Variant: plan.VariantOf("cni"), Path: betweenPods, Servers: 1, Pair: mesh.Pair{From: "n1", To: "n3"}}
			if _, err := m.Endpoints(r); err != nil {
				t.Error(err)
			}
			if node, why := m.Away(t.Context(), r.Pair, true); node != "" {
				t.Errorf("%s: %s", node, why)
			}
		})
	}
}

// TestKubeletStops: agents of its node fall silent or end, and others cannot be started. The errors name the node,
// which is away when the API server knows, and back later.
func TestKubeletStops(t *testing.T) {
	for name, end := range map[string]error{"silent": nil, "ended": errors.New("error dialing backend: dial tcp 10.0.0.2:10250: connect: connection refused")} {
		synctest.Test(t, func(t *testing.T) {
			w, m := raisedMesh(t, meshOptions(mesh.All), meshNodes(3)...)
			stopped := make(chan struct{})
			m.exec = func(ctx context.Context, pod string, _ []string, o remotecommand.StreamOptions) error {
				select {
				case <-stopped:
				default:
					_ = control.NewEncoder(o.Stdout).Encode(control.Message{Type: control.TypeHello, Hello: &control.Hello{Version: control.Version}})
					go func() { _, _ = io.Copy(io.Discard, o.Stdin) }()
					<-stopped
				}
				if end == nil {
					<-ctx.Done()
				}
				return end
			}
			pair := mesh.Pair{From: "n1", To: "n2"}
			ends, err := m.Endpoints(plan.Route{Variant: plan.VariantOf("cni"), Path: betweenPods, Servers: 1, Pair: pair})
			if err != nil {
				t.Fatal(err)
			}
			agent, err := control.Dial(t.Context(), ends.Servers[0])
			if err != nil {
				t.Fatal(err)
			}
			set := func(how ...func(*corev1.Node)) {
				n := node("n2", "z1", how...)
				if err := w.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), &n, ""); err != nil {
					t.Fatal(err)
				}
			}
			set(unready)
			close(stopped)
			_, lost := agent.Prepare(t.Context(), control.Prepare{Side: control.SideServer})
			_, unstarted := control.Dial(t.Context(), ends.Servers[0])
			for _, err := range []error{lost, unstarted} {
				if err == nil || !strings.Contains(err.Error(), "member-2 on node n2: ") || !strings.Contains(err.Error(), "node n2 is not ready: NodeStatusUnknown") {
					t.Errorf("%s: %v", name, err)
				}
			}
			_ = agent.Close()
			if node, why := m.Away(t.Context(), pair, true); node != "n2" || !strings.HasPrefix(why, "it is not ready") {
				t.Errorf("%s: %q: %s", name, node, why)
			}
			if node, why := m.Away(t.Context(), mesh.Pair{From: "n1", To: "n3"}, true); node != "" {
				t.Errorf("%s: %s: %s", name, node, why)
			}
			set()
			time.Sleep(askAgain + time.Second)
			if node, why := m.Away(t.Context(), pair, false); node != "" {
				t.Errorf("%s: it stays away: %s", name, why)
			}
		})
	}
}
