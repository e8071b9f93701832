package control

// Kinds of Error that the conversation itself can end in. A workload adds its own ("connection refused", "no route").
const (
	// KindGone: the stream ended; the agent exited or was killed.
	KindGone = "agent gone"
	// KindLost: the agent is silent for longer than the heartbeat limit.
	KindLost = "agent lost"
	// KindProtocol: one end said what the other cannot understand or did not expect.
	KindProtocol = "protocol"
	// KindVersion: the two ends speak different versions.
	KindVersion = "version"
	// KindStart: the agent could not be started.
	KindStart = "agent start"
	// KindBusy: a trial was asked for while another runs.
	KindBusy = "busy"
	// KindNoTraffic: a side completed nothing in its window, and no failure says why.
	KindNoTraffic = "no traffic"
	// KindCancelled: the trial was given up on request.
	KindCancelled = "cancelled"
)
