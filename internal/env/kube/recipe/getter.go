package recipe

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// getter gives Helm its way to the cluster: the same as everybody else's here, in a namespace of Helm's choice.
type getter struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	namespace string
}

func newGetter(config *rest.Config, d discovery.DiscoveryInterface) *getter {
	cached := memory.NewMemCacheClient(d)
	return &getter{config: config, discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}
}

// in returns the same way with another namespace.
func (g *getter) in(namespace string) *getter {
	there := *g
	there.namespace = namespace
	return &there
}

// forget makes the next question about kinds go to the API server: definitions have been added.
func (g *getter) forget() { g.mapper.Reset() }

func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*api.NewConfig(), &clientcmd.ConfigOverrides{Context: api.Context{Namespace: g.namespace}})
}
