package kube

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Cluster is a cluster in which a run measures. Its methods may be used by several goroutines once Up has returned.
type Cluster struct {
	options Options
	config  *rest.Config
	client  *api.Client
	// exec runs a command in a pod until it has ended.
	exec func(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error
	// lookup resolves the names of load balancers.
	lookup lookup
	// home is the namespace of the kubeconfig's context.
	home string
	identity

	place  placement
	layout layout
	// hostPorts are the ports on which servers in host-network pods listen, one for each slot.
	hostPorts []int

	mu sync.Mutex
	// pods has the pods of the layout that became ready, services the Services that were created.
	pods     map[string]standing
	services map[serviceSpec]reachable
	// forward is true once exec was refused and a port-forward worked; refused is the error of exec.
	forward bool
	refused string
	// streams are the open connections to agents.
	streams map[*stream]struct{}
	// created are the names of the run's namespaces.
	created []string
	closed  bool
}

const (
	// answerLimit bounds the wait for the first answer of an API server.
	answerLimit = 15 * time.Second
	// qps and burst bound the rate of requests; client-go's defaults are too low for a run that polls.
	qps, burst = 50, 100
)

// Connect returns the cluster that o names. It requests the cluster's version, to see that the API server answers. It fails
// with a *ConfigError if the kubeconfig, its context or its credentials are wrong, or if no API server answers.
func Connect(o Options) (*Cluster, error) {
	o = o.withDefaults()
	quiet()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, kubeconfigError(o, rules, err)
	}
	config.QPS, config.Burst = qps, burst
	config.UserAgent = "cnibench"
	config.WarningHandler = warnings{o.Say}
	client, err := api.New(config)
	if err != nil {
		return nil, &ConfigError{advice.With(fmt.Errorf("kubeconfig: %w", err), "kubectl config view shows what is in it")}
	}
	c := newCluster(o, client)
	c.config = config
	if c.home, _, err = loader.Namespace(); err != nil {
		return nil, kubeconfigError(o, rules, err)
	}
	ctx, stop := context.WithTimeout(context.Background(), answerLimit)
	defer stop()
	// The answer shows that the API server is reachable and accepts the credentials.
	if _, err := client.Version(ctx); err != nil {
		return nil, &ConfigError{connectError(config, err)}
	}
	return c, nil
}

// newCluster returns a Cluster for a new run, whose time to live begins now. It contacts no server.
func newCluster(o Options, client *api.Client) *Cluster {
	c := &Cluster{
		options: o, client: client, identity: identity{run: RunID(), expires: time.Now().Add(o.TTL), token: RunID() + RunID() + RunID()},
		lookup: net.DefaultResolver.LookupNetIP,
		pods:   map[string]standing{}, services: map[serviceSpec]reachable{}, streams: map[*stream]struct{}{},
	}
	c.exec = c.runInPod
	return c
}

// quiet turns off the log of the client library, whose functions also return the errors that they log.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// warnings passes the API server's warnings to say.
type warnings struct{ say func(string, ...any) }

func (w warnings) HandleWarningHeader(code int, _ string, text string) {
	if code == 299 && text != "" {
		w.say("the API server warns: %s", text)
	}
}

// kubeconfigError returns a *ConfigError for err, which is an error of reading the kubeconfig. Its advice says which file or
// context to name.
func kubeconfigError(o Options, rules *clientcmd.ClientConfigLoadingRules, err error) error {
	if clientcmd.IsEmptyConfig(err) {
		// The same error occurs for a file that has contexts and selects none.
		if read, err := rules.Load(); err == nil && len(read.Contexts) > 0 {
			return &ConfigError{advice.With(errors.New("kubeconfig: no context is the current one"),
				"name one by --context: "+strings.Join(slices.Sorted(maps.Keys(read.Contexts)), ", "))}
		}
		return &ConfigError{advice.With(fmt.Errorf("no kubeconfig: looked for %s, and this process is not in a pod", strings.Join(rules.GetLoadingPrecedence(), ", ")),
			"name one by --kubeconfig or KUBECONFIG")}
	}
	wayOut := "name the file that kubectl uses by --kubeconfig; kubectl config view shows what is in it"
	if strings.Contains(err.Error(), "context") && !errors.Is(err, os.ErrNotExist) {
		wayOut = "kubectl config get-contexts lists what there is"
	}
	return &ConfigError{advice.With(fmt.Errorf("kubeconfig: %w", err), wayOut)}
}

// connectError returns an error that says why an API server did not give a valid answer, with advice.
func connectError(config *rest.Config, err error) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var dns *net.DNSError
	var dial *net.OpError
	switch {
	case apierrors.IsUnauthorized(err):
		err := fmt.Errorf("the API server at %s does not accept the credentials of the kubeconfig", config.Host)
		if why := expiryText(config, time.Now()); why != "" {
			return advice.With(fmt.Errorf("%w: %s", err, why), "log in again, or get a new kubeconfig")
		}
		return advice.With(err, "log in again: its token or certificate may be of another cluster, expired or withdrawn")
	case apierrors.IsForbidden(err):
		return advice.With(fmt.Errorf("the API server at %s: %w", config.Host, err), "cnibench kube access says which rights are needed")
	case errors.As(err, &unknown):
		return advice.With(fmt.Errorf("the certificate of the API server at %s has an unknown authority: %w", config.Host, err),
			"the kubeconfig may be of an earlier cluster at the same address: get a new one")
	case errors.As(err, &invalid), errors.As(err, &name):
		return advice.With(fmt.Errorf("the certificate of the API server at %s: %w", config.Host, err),
			"renew an expired certificate (kubeadm certs renew) and check this machine's clock; for another name, set tls-server-name in the kubeconfig")
	case errors.Is(err, api.ErrNotKubernetes), apierrors.IsNotFound(err):
		return advice.With(fmt.Errorf("the server at %s: %w", config.Host, api.ErrNotKubernetes), "check the server's address in the kubeconfig: a proxy or a login page may answer there")
	case errors.As(err, &dns):
		return advice.With(fmt.Errorf("the name of the API server %s cannot be resolved: %w", config.Host, dns), "check the server's address in the kubeconfig, and the VPN")
	case errors.Is(err, context.DeadlineExceeded):
		return advice.With(fmt.Errorf("the API server at %s did not answer within %s", config.Host, answerLimit), "check the server's address in the kubeconfig, the VPN and the firewall")
	case errors.As(err, &dial):
		return advice.With(fmt.Errorf("the API server at %s cannot be reached: %w", config.Host, dial), "check the server's address in the kubeconfig, and that the cluster runs")
	}
	return advice.With(fmt.Errorf("the API server at %s: %w", config.Host, err),
		"see whether kubectl version has an answer with the same kubeconfig")
}

// expiryText returns a text that says when the credentials of config expired. It returns "" if they have not expired, or if
// their expiry time is unknown.
func expiryText(config *rest.Config, now time.Time) string {
	pemBytes := config.CertData
	if len(pemBytes) == 0 && config.CertFile != "" {
		pemBytes, _ = os.ReadFile(config.CertFile) // without it nothing is reported
	}
	if block, _ := pem.Decode(pemBytes); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && now.After(cert.NotAfter) {
			return "the client certificate expired on " + cert.NotAfter.UTC().Format(time.RFC3339)
		}
	}
	token := config.BearerToken
	if token == "" && config.BearerTokenFile != "" {
		raw, _ := os.ReadFile(config.BearerTokenFile) // the same
		token = strings.TrimSpace(string(raw))
	}
	if end, ok := tokenEnd(token); ok && now.After(end) {
		return "the token expired on " + end.UTC().Format(time.RFC3339)
	}
	return ""
}

// tokenEnd returns the expiry time of a JSON Web Token. ok is false for any other token, and if the token has no valid exp.
func tokenEnd(token string) (end time.Time, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return end, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return end, false
	}
	var claims struct {
		Exp *float64 `json:"exp"`
	}
	const latest = 1 << 40 // the year 36812
	if json.Unmarshal(raw, &claims) != nil || claims.Exp == nil || *claims.Exp < 0 || *claims.Exp > latest {
		return end, false
	}
	return time.Unix(int64(*claims.Exp), 0), true
}

// Run returns the id of the run, which is in the names and labels of its objects.
func (c *Cluster) Run() string { return c.run }

// Config returns a copy of the API client's configuration.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Close ends the agents that were started by exec, deletes the run's namespaces, and waits until they are gone or ctx ends.
// The error names what could not be removed and what keeps it. Close may be called again.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	open := slices.Collect(maps.Keys(c.streams))
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range open {
		all.Go(func() { _ = s.Close() }) // never an error
	}
	all.Wait()
	if len(c.created) > 0 {
		c.options.Say("removing what the run made")
	}
	err := c.removeNamespaces(ctx, c.created)
	if err == nil {
		c.created = nil
	}
	return err
}

// removeNamespaces deletes namespaces and waits until all of them are gone.
func (c *Cluster) removeNamespaces(ctx context.Context, namespaces []string) error {
	err := each.AtOnce(namespaces, func(_ int, ns string) error { return withAdvice(api.RemoveNamespace(ctx, c.client, ns, beat)) })
	return advice.With(err, "cnibench kube clean removes it later; kubectl get namespaces -l app.kubernetes.io/managed-by=cnibench lists what is left")
}
