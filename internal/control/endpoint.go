package control

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

// Endpoint is one end of a path, where an agent runs.
type Endpoint struct {
	// Name is unique in the environment, for example "canal/node-1/pod-2". Agents are kept under it between trials.
	Name string
	// Address is what the peer dials: for a path to a Service, the Service's address. Port is the port there.
	Address string
	Port    int
	// ListenAddress and ListenPort are what a server at this endpoint binds to (behind a Service: the endpoint's own
	// address and the target port). An empty address is the wildcard. From it, a UDP reply may leave with an address
	// that the client did not dial.
	ListenAddress string
	ListenPort    int
	// CPUs are the CPUs for the load threads of this endpoint.
	CPUs []int
	// Lifeline is the keepalive timeout of the agent: without a message for this time, the agent ends by itself. Start
	// passes it to the agent, and a Client sends three heartbeats in this time. 0 means no timeout. (optional)
	Lifeline time.Duration
	// Start begins an agent there and returns its stdin and stdout as one stream. Closing the stream ends the agent and
	// a pending Read. If the stream has a method LastWords() string, it returns what the agent last wrote to its
	// standard error.
	Start func(context.Context) (io.ReadWriteCloser, error)
}

// Ends are the endpoints of a route. The first server has the address that the client dials.
type Ends struct {
	Client  Endpoint
	Servers []Endpoint
	// Ready prepares the route for its next trial, since another route of the variant may have been measured before;
	// nil if nothing has to be prepared.
	Ready func() error
	// Connected is called when the connections of a trial are established and nothing is sent yet; nil if nothing has
	// to be done.
	Connected func() error
}

// Backend is one of the servers of a route through a Service; Index counts from 0.
type Backend struct {
	Route plan.Route
	Index int
}

// Arrivals are the new pods of one trial. Each is made as the client of a route, sends one request, and is removed.
type Arrivals struct {
	Route plan.Route
	// To is the endpoint that each pod sends its request to.
	To Endpoint
	// Rate is the number of pods per second, Window how long they arrive. Timeout bounds the time from a pod's intended
	// start to its answer.
	Rate            float64
	Window, Timeout time.Duration
	// Opens is called when the window opens.
	Opens func() error
}

// Churning describes the changes of Kubernetes objects during one trial.
type Churning struct {
	Variant plan.Variant
	// Warmup is the time from the call to the window. Changes in the window count, changes in the warm-up do not.
	Warmup, Window time.Duration
}

// NotServedError is the error of a path that a profile does not have. It describes a property of the profile, not a
// failure.
type NotServedError struct {
	Profile      plan.Variant
	Path, Reason string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("profile %q does not serve %s: %s", e.Profile, e.Path, e.Reason)
}

// RuntimeVariable is an environment variable of every agent, RuntimeSetting its value: Go's runtime then does not
// interrupt load threads with signals to preempt them.
const RuntimeVariable, RuntimeSetting = "GODEBUG", "asyncpreemptoff=1"
