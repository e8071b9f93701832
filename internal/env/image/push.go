package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Push names the destination of a push.
type Push struct {
	Name Name
	// Insecure allows plain HTTP and unverified certificates.
	Insecure bool
	// Progress receives the bytes pushed and the total. (optional)
	Progress func(done, total int64)
}

// Push sends the image to a registry and returns its reference with the digest. It uses the credentials that docker login or
// podman login has stored.
func (i *Image) Push(ctx context.Context, p Push) (string, error) {
	var options []name.Option
	if p.Insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(p.Name.String(), options...)
	if err != nil {
		return "", err
	}
	updates := make(chan v1.Update, 16)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for u := range updates {
			if p.Progress != nil && u.Error == nil {
				p.Progress(u.Complete, u.Total)
			}
		}
	}()
	// The library closes updates when it is done, also after an error.
	err = remote.Push(tag, i.taggedObject(), remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(p.transport()), remote.WithUserAgent("cnibench"), remote.WithProgress(updates))
	<-told
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", pushError(err, p, tag.RegistryStr())
	}
	return p.Name.String() + "@" + i.Digest(), nil
}

func (p Push) transport() http.RoundTripper {
	if !p.Insecure {
		return remote.DefaultTransport
	}
	t := remote.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	return t
}

// pushError adds the name of the image and advice to the error of a push.
func pushError(err error, p Push, registry string) error {
	wrapped := fmt.Errorf("push of %s: %w", p.Name, err)
	var refused *transport.Error
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return advice.With(wrapped, "docker login "+registry+", with an account that may push there")
	case errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound:
		return advice.With(wrapped, "make the repository first, or see whether its name is right")
	case errors.As(err, &unverified):
		return advice.With(wrapped, "--insecure if the registry's certificate is its own")
	case !p.Insecure && (errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, http.ErrSchemeMismatch)): // the registry speaks HTTP, not TLS
		return advice.With(wrapped, "--insecure if the registry speaks plain HTTP")
	}
	return advice.With(wrapped, "see whether "+registry+" can be reached from here; without a registry, use --load, or -o and ctr images import on each node")
}
