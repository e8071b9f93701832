// Package control is the protocol between the controller and an agent: JSON lines over one byte stream, versioned,
// bounded, the same in a namespace, in a pod and over ssh.
//
// An endpoint is a process. The controller starts it and holds its stdin and stdout; nothing else connects them, so no
// control traffic crosses the network under test. Read Message, then Endpoint, then Client.
//
// One trial, as the agent of one side sees it:
//
//	controller            agent
//	          <- hello        version, pid
//	prepare   ->              side, workload, address, window
//	          <- ready        listening at port / connected
//	start     ->              the server's first, with the time until the client's; the client's when the server has
//	          <- started      warming up, then measuring, each side by its own clock
//	          <- heartbeat    each second
//	          <- done         the observation; or error, with a kind
//	leave     ->              to a server of http that was taken out of its Service: serve on for the drain, then end
//	return    ->              to the same: listen again
//	          <- rolled       it drains (or has ended); it listens
//	finish    ->              to a server that cannot know when its client has ended: it has, answer now
//	cancel    ->              at any moment: give up the trial, answer error "cancelled"; after done: let go
//	heartbeat ->              at any moment, to an agent with a lifeline: the controller lives
//
// The two windows do not end at the same instant. So after its done a side stops sending, but keeps its sockets, and a
// server serves on, until cancel (send it when the other side is done, too), the next prepare, or the end of input.
//
// End of input ends the agent at once, whatever it is doing, so nothing survives a killed controller. If other machines
// lie between, the stream may break without an end. The agent then also has a lifeline, a keepalive timeout: without a
// message for so long it ends.
package control

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// Version is the version of the protocol. Both ends must have the same.
const Version = 7

// maxLine bounds one message in bytes; a longer line is an error.
const maxLine = 16 << 20

// messageType determines which field of a Message counts.
type messageType string

// The message types, in the order of a trial.
const (
	TypeHello     messageType = "hello"
	TypePrepare   messageType = "prepare"
	TypeReady     messageType = "ready"
	TypeStart     messageType = "start"
	TypeStarted   messageType = "started"
	TypeHeartbeat messageType = "heartbeat"
	TypeDone      messageType = "done"
	TypeError     messageType = "error"
	TypeLeave     messageType = "leave"
	TypeReturn    messageType = "return"
	TypeRolled    messageType = "rolled"
	TypeFinish    messageType = "finish"
	TypeCancel    messageType = "cancel"
)

// Message is one line of JSON. Trial is the number of its trial, so that a late answer to an abandoned trial is not
// taken for an answer to the next.
type Message struct {
	Type    messageType         `json:"type"`
	Trial   uint64              `json:"trial,omitempty"`
	Hello   *Hello              `json:"hello,omitempty"`
	Prepare *Prepare            `json:"prepare,omitempty"`
	Ready   *Ready              `json:"ready,omitempty"`
	Start   *Start              `json:"start,omitempty"`
	Leave   *leave              `json:"leave,omitempty"`
	Done    *sample.Observation `json:"done,omitempty"`
	Error   *Error              `json:"error,omitempty"`
	// Stands is the state of the trial in a heartbeat, for the error of a trial that does not end.
	Stands string `json:"stands,omitempty"`
}

// Hello is the first message of an agent.
type Hello struct {
	Version int    `json:"version"`
	Program string `json:"program"` // version of the binary
	PID     int    `json:"pid"`
	// Machine identifies the agent's machine: the id of its kernel's boot, "" if it could not be read.
	Machine string `json:"machine,omitempty"`
	// Idle are the CPUs that this agent may use, ordered by their idle time since the machine's start, longest first.
	Idle []int `json:"idle,omitempty"`
}

// The sides of a trial, which are the values of Prepare.Side and Observation.Side.
const (
	SideServer = "server"
	SideClient = "client"
)

// Prepare asks for one side of a trial.
type Prepare struct {
	// Side is SideServer or SideClient.
	Side     string        `json:"side"`
	Workload plan.Workload `json:"workload"`
	// Address is what the client dials, or what the server binds to ("" is any); without port.
	Address string `json:"address"`
	// Port is what the client dials or the server binds to (0 lets the kernel choose).
	Port int `json:"port"`
	// Name is what a server of http calls itself in its responses; visible ASCII, "" for the machine's name.
	Name string `json:"name,omitempty"`
	// CPUs are the CPUs of the path, which load threads use, one each in turn. If there are none, the threads use
	// Pinned, which does not define the path's CPUs: counters then cover all CPUs. Without either, threads are not
	// pinned.
	CPUs   []int `json:"cpus,omitempty"`
	Pinned []int `json:"pinned,omitempty"`
	// Seat is the place of this side among the members of a job; nil for no job.
	Seat *Seat `json:"seat,omitempty"`
	Manner
	// Warmup is discarded; Window, at least 1 ms, counts. Interval is the length of a progress row, 0 for none.
	Warmup   time.Duration `json:"warmup"`
	Window   time.Duration `json:"window"`
	Interval time.Duration `json:"interval,omitempty"`
	// Awaits is the longest time that an http server waits for its first connection before its warm-up begins; 0 does
	// not wait. A client that is a program takes a while to start.
	Awaits time.Duration `json:"awaits,omitempty"`
	// Timeout bounds one exchange (a reply, a connect) before it is counted as an error of kind "timeout"; 0 is 50 ms for
	// rr over UDP, which has no retransmission, and 1 s otherwise.
	Timeout time.Duration `json:"timeout"`
	// Setup bounds the set-up of one flow; 0 is 3 s.
	Setup time.Duration `json:"setup,omitempty"`
	// Sampled asks for the fields that attribute CPU samples: Observation.Threads and BeganNs.
	Sampled bool `json:"sampled,omitempty"`
}

// Manner is how a side runs its trial.
type Manner struct {
	// Apart is true if the sides are on two machines, whose clocks drift apart.
	Apart bool `json:"apart,omitempty"`
	// Foremost asks for load threads with priority over other programs on their CPUs, where that is possible. It is not
	// for concurrent trials, which would starve each other.
	Foremost bool `json:"foremost,omitempty"`
	// Placement chooses the CPUs of sides on one machine if the environment does not. Only the controller uses it; it
	// is not sent.
	Placement condition.Placement `json:"-"`
}

// Seat is the place of a member of a job. The first member directs the steps.
type Seat struct {
	Rank int `json:"rank"`
	// Members are all members in order. A member dials the members after it, which listen already.
	Members []Peer `json:"members"`
}

// Peer is a member of a job as the others see it.
type Peer struct {
	// Name is the member's name in messages to the user.
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
}

// Ready answers Prepare.
type Ready struct {
	// Port is the port that the server listens on.
	Port int `json:"port,omitempty"`
}

// Start lets a prepared side run.
type Start struct {
	// Delay is how long a server serves before its warm-up begins. It covers the time until the client receives its own
	// start.
	Delay time.Duration `json:"delay"`
}

// leave asks a server to end as the server in a deleted pod does.
type leave struct {
	// Drain is how long the server still serves. Each response is then the last of its connection. After Drain all
	// connections end.
	Drain time.Duration `json:"drain"`
}

// Error is the reason why a side gave up. Kind is the class of the error in one or two words ("connection refused"), by
// which errors are counted. Message names the object and the cause.
type Error struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// Kinds of Error that the conversation itself can end in. A workload adds its own ("connection refused", "no route").
const (
	// KindGone: the stream ended; the agent exited or was killed.
	KindGone = "agent gone"
	// KindLost: the agent is silent for longer than the heartbeat limit.
	KindLost = "agent lost"
	// KindProtocol: one end sent what the other cannot understand or did not expect.
	KindProtocol = "protocol"
	// KindVersion: the two ends use different versions of the protocol.
	KindVersion = "version"
	// KindStart: the agent could not be started.
	KindStart = "agent start"
	// KindBusy: a trial was asked for while another runs.
	KindBusy = "busy"
	// KindNoTraffic: a side completed nothing in its window, and no failure explains it.
	KindNoTraffic = "no traffic"
	// KindCancelled: the trial was given up on request.
	KindCancelled = "cancelled"
)
