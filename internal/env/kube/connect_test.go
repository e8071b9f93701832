package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// kubeconfig writes one for a server, and returns its path.
func kubeconfig(t *testing.T, server, user string) string {
	t.Helper()
	return writeKubeconfig(t, server, user, false)
}

func writeKubeconfig(t *testing.T, server, user string, strict bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: team}}]
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: %t}}]
users: [{name: u, user: {%s}}]
`, server, !strict && strings.HasPrefix(server, "https:"), user)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// token returns a JSON Web Token that expires when it says.
func token(expires time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix())) + "."
}

func TestConnect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
			return
		}
		w.Header().Set("Warning", `299 - "this server is old"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1"}`)
	}))
	defer s.Close()
	var said strings.Builder
	c, err := Connect(Options{Kubeconfig: kubeconfig(t, s.URL, ""), Say: func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }})
	if err != nil {
		t.Fatal(err)
	}
	if c.home != "team" || c.Run() == "" || c.Config().Host != s.URL {
		t.Errorf("%+v", c)
	}
	if _, err := c.client.Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(), "this server is old") {
		t.Errorf("the server's warning is lost: %q", said.String())
	}
}

// TestNoWay has everything wrong that can be with the way to a cluster; all of it is bad input.
func TestNoWay(t *testing.T) {
	answer := func(code int, body string) string {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	refused := answer(http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
	torn := filepath.Join(t.TempDir(), "torn")
	if err := os.WriteFile(torn, []byte("clusters: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty, undecided := filepath.Join(t.TempDir(), "empty"), kubeconfig(t, gone.URL, "")
	text, err := os.ReadFile(undecided)
	if err == nil {
		err = errors.Join(os.WriteFile(empty, nil, 0o600), os.WriteFile(undecided, []byte(strings.ReplaceAll(string(text), "current-context: here\n", "")), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o      Options
		want   string
		advice string
	}{
		"no file":         {Options{Kubeconfig: "/nowhere/config"}, "/nowhere/config: no such file", "--kubeconfig"},
		"torn file":       {Options{Kubeconfig: torn}, torn, "kubectl config"},
		"no such context": {Options{Kubeconfig: kubeconfig(t, gone.URL, ""), Context: "there"}, `context "there" does not exist`, "kubectl config get-contexts"},
		"nobody there":    {Options{Kubeconfig: kubeconfig(t, gone.URL, "")}, "cannot be reached", "that the cluster runs"},
		"no such name":    {Options{Kubeconfig: kubeconfig(t, "https://cluster.invalid:6443", "")}, "cluster.invalid", "check the server's address"},
		"other authority": {Options{Kubeconfig: writeKubeconfig(t, secure.URL, "", true)}, "has an unknown authority", "earlier cluster"},
		"not accepted":    {Options{Kubeconfig: kubeconfig(t, refused, `token: "x"`)}, "does not accept the credentials", "log in again"},
		"expired token":   {Options{Kubeconfig: kubeconfig(t, refused, "token: "+token(time.Unix(1e9, 0)))}, "the token expired on 2001-09-09T01:46:40Z", "log in again"},
		"not allowed":     {Options{Kubeconfig: kubeconfig(t, answer(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden: User cannot get path /version","reason":"Forbidden","code":403}`), "")}, "orbidden", "kube access"},
		"a web server":    {Options{Kubeconfig: kubeconfig(t, answer(http.StatusOK, "<html>"), "")}, "not a Kubernetes API server", "a login page"},
		"another JSON":    {Options{Kubeconfig: kubeconfig(t, answer(http.StatusOK, "{}"), "")}, "not a Kubernetes API server", "check the server's address"},
		"nothing there":   {Options{Kubeconfig: kubeconfig(t, answer(http.StatusNotFound, "<html>"), "")}, "not a Kubernetes API server", "check the server's address"},
		"no address":      {Options{Kubeconfig: kubeconfig(t, "https://[", "")}, "kubeconfig: ", "kubectl config view"},
		"none current":    {Options{Kubeconfig: undecided}, "no context is the current one", "name one by --context: here"},
		"nothing in it":   {Options{Kubeconfig: empty}, "no kubeconfig: looked for " + empty, "--kubeconfig"},
	} {
		_, err := Connect(c.o)
		var bad *ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) || !strings.Contains(advice.Of(err), c.advice) {
			t.Errorf("%s: %v | hint: %s; want %q | %q", name, err, advice.Of(err), c.want, c.advice)
		}
	}
}

func TestExpired(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := func(end time.Time) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token(now.Add(-time.Minute))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config rest.Config
		want   string
	}{
		"nothing":        {rest.Config{}, ""},
		"certificate":    {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: cert(now.Add(-time.Hour))}}, "the client certificate expired on 2029-12-31T23:00:00Z"},
		"good one":       {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: cert(now.Add(time.Hour))}}, ""},
		"no certificate": {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x"), CertFile: "/nowhere"}}, ""},
		"token":          {rest.Config{BearerToken: token(now.Add(-time.Second))}, "the token expired on 2029-12-31T23:59:59Z"},
		"good token":     {rest.Config{BearerToken: token(now.Add(time.Second))}, ""},
		"token in file":  {rest.Config{BearerTokenFile: file}, "the token expired"},
		"opaque token":   {rest.Config{BearerToken: "abc.def.ghi"}, ""},
	} {
		if got := expiryText(&c.config, now); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzTokenEnd(f *testing.F) {
	f.Add(token(time.Unix(1e9, 0)))
	f.Add("a.b.c")
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if end, ok := tokenEnd(text); ok && (end.Year() < 1970 || end.Year() > 40000) {
			t.Errorf("%q expires in %s", text, end)
		}
	})
}
