package kube

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// nodeWith returns a node that reports images.
func nodeWith(name string, images ...string) corev1.Node {
	n := node(name, "z")
	for _, i := range images {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{i, i + "@sha256:0"}})
	}
	return n
}

// TestSettleImage: of the images that all chosen nodes report, a plan with tools takes one that has them; where the nodes have
// none, the run ends before anything is made.
func TestSettleImage(t *testing.T) {
	name := func(tools ...string) string { return image.ToolsName("1", tools).String() }
	for what, tt := range map[string]struct {
		asked string
		tools []string
		nodes []corev1.Node
		want  string
		fault string
	}{
		"the one asked for":     {name("ping"), []string{"ping"}, []corev1.Node{nodeWith("a", name("ping"), name("ping", "wrk")), nodeWith("b", name("ping"))}, name("ping"), ""},
		"one with more tools":   {name("ping"), []string{"ping"}, []corev1.Node{nodeWith("a", "x:1", name("ping", "wrk")), nodeWith("b", name("ping", "wrk"))}, name("ping", "wrk"), ""},
		"on one of two nodes":   {name("ping"), []string{"ping"}, []corev1.Node{nodeWith("a", "x:1"), nodeWith("b", name("ping"))}, "", "nodes a, b have no image with ping"},
		"without the tool":      {name("ping"), []string{"ping"}, []corev1.Node{nodeWith("a", name("wrk"))}, "", "have no image with ping"},
		"nodes report nothing":  {name("ping"), []string{"ping"}, []corev1.Node{nodeWith("a"), nodeWith("b", "x:1")}, name("ping"), ""},
		"a registry's":          {"registry.example/x:1-with-ping", []string{"ping"}, []corev1.Node{nodeWith("a", "x:1")}, "registry.example/x:1-with-ping", ""},
		"a plan without a tool": {"cnibench.local/cnibench:1", nil, []corev1.Node{nodeWith("a", "x:1")}, "cnibench.local/cnibench:1", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: tt.asked}, Tools: tt.tools}, tt.nodes...)
			err := c.chooseNodesAndImage(t.Context())
			var config *ConfigError
			switch {
			case tt.fault == "" && (err != nil || c.Image() != tt.want):
				t.Errorf("%s: %s, %v; want %s", what, c.Image(), err, tt.want)
			case tt.fault != "" && (!errors.As(err, &config) || !strings.Contains(err.Error(), tt.fault) || !strings.Contains(advice.Of(err), "cnibench image --with ping")):
				t.Errorf("%s: %v", what, err)
			}
			if left := w.left(t); len(left) > 0 {
				t.Errorf("%s: made %v", what, left)
			}
		})
	}
}

// TestToolsHaveAPlace: pods of a plan with tools may write /tmp, others nothing.
func TestToolsHaveAPlace(t *testing.T) {
	for _, tools := range [][]string{nil, {"iperf3"}} {
		p := podObject(identity{run: "r"}, Options{Tools: tools}.withDefaults(), podSpec{})
		mounted := slices.ContainsFunc(p.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tmp" })
		if mounted != (tools != nil) || len(p.Spec.Volumes) != len(tools) {
			t.Errorf("tools %v: mounts %v of %v", tools, p.Spec.Containers[0].VolumeMounts, p.Spec.Volumes)
		}
	}
}

// TestFindTools: an image without a tool of the plan ends the run before a trial, and says how to make one that has it.
func TestFindTools(t *testing.T) {
	_, c := onePath(t)
	if err := c.checkTools(t.Context()); err != nil { // without tools no agent is asked
		t.Fatal(err)
	}
	c.layout = newLayout(c.options, c.place)
	c.options.Tools = []string{"iperf3", "wrk"}
	for says, want := range map[string]string{"": "", "wrk\n": "has no wrk, which the plan names"} {
		c.exec = func(_ context.Context, _ string, argv []string, o remotecommand.StreamOptions) error {
			if strings.Join(argv, " ") != "/cnibench agent --lacks iperf3,wrk" {
				t.Errorf("argv %q", argv)
			}
			_, err := io.WriteString(o.Stdout, says)
			return err
		}
		err := c.checkTools(t.Context())
		var config *ConfigError
		if (err == nil) != (want == "") || err != nil && (!errors.As(err, &config) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(advice.Of(err), "cnibench image --with iperf3,wrk")) {
			t.Errorf("%q: %v", says, err)
		}
	}
	for fails, want := range map[error]bool{apierrors.NewForbidden(podResource, "client", errors.New("no exec")): false, io.ErrUnexpectedEOF: true} {
		c.exec = func(context.Context, string, []string, remotecommand.StreamOptions) error { return fails }
		if err := c.checkTools(t.Context()); (err != nil) != want {
			t.Errorf("exec fails with %v: %v", fails, err)
		}
	}
}
