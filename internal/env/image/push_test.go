package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// quietRegistry keeps what it gets in memory.
func quietRegistry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// host is where a server listens.
func host(s *httptest.Server) string {
	_, address, _ := strings.Cut(s.URL, "://")
	return address
}

func mustName(t *testing.T, s string) Name {
	t.Helper()
	n, err := ParseName(s, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPushComesBackEqual(t *testing.T) {
	s := httptest.NewServer(quietRegistry())
	defer s.Close()
	for _, arch := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
		i := mustBuild(t, arch...)
		var done, total int64
		got, err := i.Push(t.Context(), Push{Name: mustName(t, host(s)+"/team/cnibench"), Progress: func(d, of int64) { done, total = d, of }})
		if err != nil {
			t.Fatal(err)
		}
		if want := host(s) + "/team/cnibench:" + testVersion + "@" + i.Digest(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if total == 0 || done != total {
			t.Errorf("%v: progress ends at %d of %d", arch, done, total)
		}
		ref, err := name.ParseReference(got)
		if err != nil {
			t.Fatal(err)
		}
		if len(arch) == 1 {
			img, err := remote.Image(ref)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, img, i.single[0].image)
			continue
		}
		index, err := remote.Index(ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		for _, p := range i.single {
			img, err := remote.Image(ref, remote.WithPlatform(p.platform))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, img, p.image)
		}
	}
}

// compare wants two images to be the same bytes.
func compare(t *testing.T, got, want v1.Image) {
	t.Helper()
	for _, part := range []func(v1.Image) ([]byte, error){v1.Image.RawManifest, v1.Image.RawConfigFile, layerBytes} {
		a, err := part(got)
		if err != nil {
			t.Fatal(err)
		}
		b, err := part(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("got %.200q\nwant %.200q", a, b)
		}
	}
}

func layerBytes(i v1.Image) ([]byte, error) {
	layers, err := i.Layers()
	if err != nil {
		return nil, err
	}
	r, err := layers[0].Compressed()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestPushNeedsNothingTwice: what a registry has is not sent again.
func TestPushNeedsNothingTwice(t *testing.T) {
	uploads := 0
	inner := quietRegistry()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			uploads++
		}
		inner.ServeHTTP(w, r)
	}))
	defer s.Close()
	for range 2 {
		if _, err := mustBuild(t, "amd64").Push(t.Context(), Push{Name: mustName(t, host(s)+"/cnibench")}); err != nil {
			t.Fatal(err)
		}
	}
	if uploads != 2 { // the layer and the configuration
		t.Errorf("%d uploads, want 2", uploads)
	}
}

func TestPushWithDockersCredentials(t *testing.T) {
	inner := quietRegistry()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "someone" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer s.Close()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	i, p := mustBuild(t, "amd64"), Push{Name: mustName(t, host(s)+"/cnibench")}
	_, err := i.Push(t.Context(), p)
	if err == nil || !strings.Contains(advice.Of(err), "docker login "+host(s)) {
		t.Errorf("without credentials: %v, hint %q", err, advice.Of(err))
	}
	write(t, filepath.Join(dir, "config.json"), `{"auths":{"`+host(s)+`":{"auth":"c29tZW9uZTpzZWNyZXQ="}}}`)
	if _, err := i.Push(t.Context(), p); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

func TestPushToARegistryWithItsOwnCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(quietRegistry())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	i, p := mustBuild(t, "amd64"), Push{Name: mustName(t, host(s)+"/cnibench")}
	_, err := i.Push(t.Context(), p)
	if err == nil || !strings.Contains(advice.Of(err), "--insecure") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
	p.Insecure = true
	if _, err := i.Push(t.Context(), p); err != nil {
		t.Errorf("--insecure: %v", err)
	}
}

func TestPushFaults(t *testing.T) {
	i := mustBuild(t, "amd64")
	for status, want := range map[int]string{
		http.StatusForbidden: "docker login",
		http.StatusNotFound:  "repository",
		http.StatusTeapot:    "can be reached",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(status)
			}
		}))
		_, err := i.Push(t.Context(), Push{Name: mustName(t, host(s)+"/cnibench")})
		if err == nil || !strings.Contains(err.Error(), host(s)) || !strings.Contains(advice.Of(err), want) {
			t.Errorf("%d: %v, hint %q", status, err, advice.Of(err))
		}
		s.Close()
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := i.Push(t.Context(), Push{Name: mustName(t, host(gone)+"/cnibench")})
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(advice.Of(err), "--load") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
}

func TestPushIsInterrupted(t *testing.T) {
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(reason)
		<-r.Context().Done()
	}))
	defer s.Close()
	if _, err := mustBuild(t, "amd64").Push(ctx, Push{Name: mustName(t, host(s)+"/cnibench")}); !errors.Is(err, reason) {
		t.Errorf("%v", err)
	}
}
