package load

import "github.com/cnibench/cnibench/internal/plan"

// Bidirectional streams are two streams at once, with twice as many flows: an even index goes from the client to the server,
// an odd index back. So each direction has its own sockets, as with two programs that each send, and the acknowledgements of
// one direction share the path with the other.

// openEitherWay makes a worker the sender or the receiver of its flow.
func openEitherWay(w *worker) (flow, error) {
	s := specOf[plan.Stream](w)
	s.Bidirectional, s.Reverse = false, w.index%2 == 1
	return streamWork(s, !w.server()).open(w)
}
