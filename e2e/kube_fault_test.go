//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

var podToPod = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

// account returns a kubeconfig of an account that has these rights and no others.
func account(t *testing.T, rights []kube.Right) string {
	t.Helper()
	admin, err := kube.Connect(options(t))
	if err != nil {
		t.Fatal(err)
	}
	name := "cnibench-e2e-" + kube.RunID()
	client, ctx := clientset(admin), t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, r := range rights {
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{resource}, Verbs: []string{r.Verb}})
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(ctx, who, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: "default"}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{
			client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}),
			client.CoreV1().ServiceAccounts("default").Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rewrite(t, func(c *clientcmdapi.Config) {
		for _, u := range c.AuthInfos {
			*u = clientcmdapi.AuthInfo{Token: token.Status.Token}
		}
	})
}

// rewrite returns a changed copy of the kubeconfig under test.
func rewrite(t *testing.T, change func(*clientcmdapi.Config)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(options(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// needed are the rights without which there is no run.
func needed() []kube.Right {
	return slices.DeleteFunc(slices.Clone(kube.Rights), func(r kube.Right) bool { return r.Optional })
}

// TestExactRights measures with the rights that a run needs and no others, and wants the one that is missing named.
func TestExactRights(t *testing.T) {
	o := options(t)
	o.Kubeconfig = account(t, needed())
	o.Paths = []plan.Path{podToPod, {From: plan.Host, To: plan.Service, Locality: plan.Remote}}
	c := raise(t, o)
	silent, err := c.Reach(t.Context(), plan.Variants("cni"))
	if err != nil || len(silent) > 0 {
		t.Errorf("reach: %v, %v", silent, err)
	}
	for _, p := range o.Paths {
		client, server, err := endsOf(c, plan.VariantOf("cni"), p)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := measure(t.Context(), client, server); err != nil || n == 0 {
			t.Errorf("%s: %d transactions, %v", p, n, err)
		}
	}
}

func TestOneRightLess(t *testing.T) {
	for i, r := range needed() {
		o := options(t)
		o.Kubeconfig = account(t, slices.Delete(needed(), i, i+1))
		c, err := kube.Connect(o)
		if err != nil {
			t.Fatal(err)
		}
		var missing *kube.AccessError
		if err := c.Preflight(t.Context()); !errors.As(err, &missing) || len(missing.Missing) != 1 || missing.Missing[0] != r {
			t.Errorf("without the right to %s: %v", r, err)
		}
	}
}

// TestExecIsForbidden has agents reached by port-forward where exec is not allowed.
func TestExecIsForbidden(t *testing.T) {
	o := options(t)
	o.Kubeconfig = account(t, slices.DeleteFunc(slices.Clone(kube.Rights), func(r kube.Right) bool { return r.Subresource == "exec" }))
	o.Paths = []plan.Path{podToPod, {From: plan.Host, To: plan.Host, Locality: plan.CrossNode}}
	c, err := kube.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { takeDown(t, c) })
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range o.Paths {
		client, server, err := endsOf(c, plan.VariantOf("cni"), p)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := measure(t.Context(), client, server); err != nil || n == 0 {
			t.Errorf("%s: %d transactions, %v", p, n, err)
		}
	}
	if how := c.Facts()[kube.FactAgents]; !strings.HasPrefix(how, "port-forward: exec is refused") {
		t.Errorf("agents are reached by %q", how)
	}
	wantNoAgents(t, c, 5*time.Second)
}

// token returns what every process of c's pods has in its environment.
func token(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	list, err := clientset(c).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: kube.LabelRun + "=" + c.Run()})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	return list.Items[0].Spec.Containers[0].Env[0].Value
}

// agents returns the processes of agents in c's pods. The nodes of the test cluster are namespaces of this machine.
func agents(t *testing.T, token string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte("agent\x00")) {
			continue // it has ended meanwhile
		}
		environment, err := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if err == nil && bytes.Contains(environment, []byte(token)) {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}

// wantNoAgents waits until no agent of c's pods is left, and says how long that took.
func wantNoAgents(t *testing.T, c *kube.Cluster, limit time.Duration) {
	t.Helper()
	word := token(t, c)
	began := time.Now()
	for len(agents(t, word)) > 0 {
		if time.Since(began) > limit {
			t.Errorf("after %s agents are left: %v", limit, agents(t, word))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("no agent is left after %s", time.Since(began).Round(10*time.Millisecond))
}

// wall stands between this machine and the API server, and can be pulled down or fall silent.
type wall struct {
	net.Listener
	mu     sync.Mutex
	conns  []net.Conn
	silent bool
}

// behindWall returns a kubeconfig that leads through a wall.
func behindWall(t *testing.T) (*wall, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wall{Listener: l}
	t.Cleanup(func() { l.Close(); w.cut() })
	var behind string
	path := rewrite(t, func(c *clientcmdapi.Config) {
		for _, cluster := range c.Clusters {
			u, err := url.Parse(cluster.Server)
			if err != nil {
				t.Fatal(err)
			}
			behind, u.Host = u.Host, l.Addr().String()
			cluster.Server = u.String()
		}
	})
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", behind)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			go w.pass(near, far)
			go w.pass(far, near)
		}
	}()
	return w, path
}

func (w *wall) pass(from, to net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		silent := w.silent
		w.mu.Unlock()
		if silent {
			continue
		}
		if _, writeErr := to.Write(b[:n]); err != nil || writeErr != nil {
			to.Close()
			return
		}
	}
}

func (w *wall) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = false
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *wall) fallSilent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = true
}

// underway starts a long trial between two pods and returns its client.
func underway(t *testing.T, c *kube.Cluster) *control.Client {
	t.Helper()
	client, server, err := endsOf(c, plan.VariantOf("cni"), podToPod)
	if err != nil {
		t.Fatal(err)
	}
	ask := control.Prepare{Workload: plan.Workload{Spec: plan.RR{}}.Normalize(), Window: 5 * time.Minute, Timeout: 2 * time.Second}
	var ends []*control.Client
	for _, side := range []struct {
		name, address string
		port          int
		end           control.Endpoint
	}{{control.SideServer, server.ListenAddress, server.ListenPort, server}, {control.SideClient, server.Address, server.Port, client}} {
		agent, err := control.Dial(t.Context(), side.end)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = agent.Close() })
		ask.Side, ask.Address, ask.Port = side.name, side.address, side.port
		if _, err := agent.Prepare(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		if err := agent.Start(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, agent)
	}
	return ends[1]
}

// failsWith waits for the end of a trial and wants one of kinds, with words in its message.
func failsWith(t *testing.T, trial *control.Client, words string, kinds ...string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	began := time.Now()
	_, err := trial.Wait(ctx)
	t.Logf("after %s: %v", time.Since(began).Round(10*time.Millisecond), err)
	var said *control.Error
	if !errors.As(err, &said) || !slices.Contains(kinds, said.Kind) || !strings.Contains(err.Error(), words) {
		t.Errorf("the trial ends with %v, want %v with %q", err, kinds, words)
	}
}

func raiseOnePath(t *testing.T, kubeconfig string) *kube.Cluster {
	t.Helper()
	o := options(t)
	o.Kubeconfig, o.Paths = kubeconfig, []plan.Path{podToPod}
	return raise(t, o)
}

// TestStreamIsCut ends the connections of a trial: the trial fails, and no agent stays in the pods.
func TestStreamIsCut(t *testing.T) {
	w, config := behindWall(t)
	c := raiseOnePath(t, config)
	trial := underway(t, c)
	w.cut()
	failsWith(t, trial, "", control.KindGone)
	wantNoAgents(t, c, 10*time.Second)
}

// TestStreamFallsSilent takes the line away without an end: agents go by their lifeline.
func TestStreamFallsSilent(t *testing.T) {
	w, config := behindWall(t)
	c := raiseOnePath(t, config)
	word := token(t, c)
	trial := underway(t, c)
	if len(agents(t, word)) != 2 {
		t.Fatalf("agents %v", agents(t, word))
	}
	w.fallSilent()
	failsWith(t, trial, "nothing heard for", control.KindLost)
	began := time.Now()
	for len(agents(t, word)) > 0 && time.Since(began) < 30*time.Second {
		time.Sleep(50 * time.Millisecond)
	}
	if left := agents(t, word); len(left) > 0 {
		t.Errorf("agents %v outlive their lifeline", left)
	}
	w.cut() // so that the pods can be taken down
}

// TestPodIsDeleted takes a pod away in mid-trial.
func TestPodIsDeleted(t *testing.T) {
	c := raiseOnePath(t, options(t).Kubeconfig)
	trial := underway(t, c)
	if err := clientset(c).CoreV1().Pods("cnibench-"+c.Run()).Delete(t.Context(), "client", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	failsWith(t, trial, "pod client", control.KindGone, control.KindLost)
}

// TestNamespaceIsStuck keeps the run's namespace by a finalizer on a pod, and wants it named; then clean removes it.
func TestNamespaceIsStuck(t *testing.T) {
	o := options(t)
	o.Paths = []plan.Path{podToPod}
	c, err := kube.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := "cnibench-" + c.Run()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}}}
	if _, err := clientset(c).CoreV1().ConfigMaps(ns).Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 12*time.Second)
	defer stop()
	err = c.Close(ctx)
	t.Log(err)
	if err == nil || !strings.Contains(err.Error(), "example.com/held") {
		t.Errorf("the finalizer is not named: %v", err)
	}
	held.Finalizers = nil
	if _, err := clientset(c).CoreV1().ConfigMaps(ns).Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	removed, err := kube.Clean(t.Context(), o, kube.CleanOptions{Run: c.Run()})
	for _, r := range removed {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if err != nil {
		t.Error(err)
	}
	takeDown(t, c)
}

// disturb runs a verb of the program that raised the cluster and returns what it prints; the test is skipped where the
// cluster may not be disturbed.
func disturb(t *testing.T, args ...string) string {
	t.Helper()
	tool, name := os.Getenv("CNIBENCH_E2E_TOOL"), os.Getenv("CNIBENCH_E2E_CLUSTER")
	if tool == "" || name == "" {
		t.Skip("the cluster may not be disturbed: CNIBENCH_E2E_TOOL and CNIBENCH_E2E_CLUSTER say by which program and name it may")
	}
	out, err := exec.Command(tool, slices.Concat(args[:1], []string{"--name", name}, args[1:])...).CombinedOutput()
	if err != nil {
		t.Fatalf("cluster %v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestAPIServerRestarts kills the API server in mid-trial: the trial fails, agents go, and the next trial works.
func TestAPIServerRestarts(t *testing.T) {
	disturb(t, "status")
	c := raiseOnePath(t, options(t).Kubeconfig)
	word := token(t, c)
	trial := underway(t, c)
	disturb(t, "restart", "apiserver")
	failsWith(t, trial, "", control.KindGone, control.KindLost)
	began := time.Now()
	for len(agents(t, word)) > 0 && time.Since(began) < 30*time.Second {
		time.Sleep(50 * time.Millisecond)
	}
	if left := agents(t, word); len(left) > 0 {
		t.Errorf("agents %v outlive the API server", left)
	}
	client, server, err := endsOf(c, plan.VariantOf("cni"), podToPod)
	if err != nil {
		t.Fatal(err)
	}
	for {
		n, err := measure(t.Context(), client, server)
		if err == nil && n > 0 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("no trial works any more: %v", err)
		}
	}
}

// TestNodeGoesNotReady stops a kubelet in mid-trial.
func TestNodeGoesNotReady(t *testing.T) {
	disturb(t, "status")
	c := raiseOnePath(t, options(t).Kubeconfig)
	underway(t, c)
	node := c.Facts()[kube.FactServer]
	disturb(t, "pause", node)
	defer disturb(t, "resume", node)
	client, err := kube.Connect(options(t))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, time.Minute, func() (bool, string) {
		n, err := clientset(client).CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				return cond.Status != corev1.ConditionTrue, string(cond.Status)
			}
		}
		return false, "no condition"
	})
	_, end, err := endsOf(c, plan.VariantOf("cni"), podToPod)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	_, err = control.Dial(ctx, end)
	t.Logf("another agent there: %v", err)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("node %s is not ready", node)) {
		t.Errorf("the node is not named: %v", err)
	}
}

func waitFor(t *testing.T, limit time.Duration, done func() (bool, string)) {
	t.Helper()
	began := time.Now()
	for {
		ok, state := done()
		if ok {
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, state)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestPolicyRefuses has an admission policy of the cluster refuse the run's pods.
func TestPolicyRefuses(t *testing.T) {
	disturb(t, "status") // a policy is in force for everybody
	o := options(t)
	o.Paths = []plan.Path{podToPod}
	c, err := kube.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	client, name := clientset(c).AdmissionregistrationV1(), "cnibench-e2e-"+c.Run()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "!has(object.metadata.labels) || !('" + kube.LabelRun + "' in object.metadata.labels)", Message: "no measurements here"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := func() error {
		trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kube.LabelRun: "x"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		_, err := clientset(c).CoreV1().Pods("default").Create(context.Background(), trial, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	t.Cleanup(func() {
		_ = client.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
		// The API server goes on refusing for a while, which the next test would meet.
		waitFor(t, time.Minute, func() (bool, string) {
			err := refused()
			return err == nil || !strings.Contains(err.Error(), "no measurements here"), fmt.Sprint(err)
		})
	})
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	waitFor(t, time.Minute, func() (bool, string) {
		err := refused()
		return err != nil && strings.Contains(err.Error(), "no measurements here"), fmt.Sprint(err)
	})
	err = c.Up(t.Context())
	t.Logf("%v | hint: %s", err, advice.Of(err))
	if err == nil || !strings.Contains(err.Error(), "no measurements here") || !strings.Contains(advice.Of(err), "policy of this cluster") {
		t.Errorf("%v | hint: %s", err, advice.Of(err))
	}
	takeDown(t, c)
}
