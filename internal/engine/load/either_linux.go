package load

import "github.com/cnibench/cnibench/internal/plan"

// Bidirectional streams are two streams at once: of twice as many flows those with an even index go from the client to the
// server, the others back. So each direction has its own sockets, as with two programs that each send, and what one
// direction's acknowledgements cost is in the other's way as it would be there.

// openEitherWay makes a worker the sender or the receiver of its flow.
func openEitherWay(w *worker) error {
	s := specOf[plan.Stream](w)
	s.Bidirectional, s.Reverse = false, w.index%2 == 1
	return streamWork(s, !w.server()).open(w)
}
