package load

// flight keeps the times of a flow's requests that are under way, by their sequence numbers, which count from 0. It is a
// ring of fixed size.
type flight struct {
	slots      []request
	head, next uint64 // [head, next) are under way, except those answered out of order
	count      int
}

// request has the scheduled and the actual time of a request. An empty slot has due 0.
type request struct{ due, sent int64 }

// newFlight has room for size requests, a power of 2.
func newFlight(size int) flight { return flight{slots: make([]request, size)} }

func (f *flight) slot(sequence uint64) *request { return &f.slots[sequence%uint64(len(f.slots))] }

func (f *flight) full() bool { return f.next-f.head == uint64(len(f.slots)) }

// push notes a request, for which there is room, and returns its number.
func (f *flight) push(due, sent int64) uint64 {
	n := f.next
	*f.slot(n) = request{max(due, 1), sent}
	f.next++
	f.count++
	return n
}

// answer takes a request out; false if no such request is under way.
func (f *flight) answer(sequence uint64) (due int64, ok bool) {
	if sequence-f.head >= f.next-f.head {
		return 0, false
	}
	s := f.slot(sequence)
	if due = s.due; due == 0 {
		return 0, false
	}
	s.due = 0
	f.count--
	for f.head < f.next && f.slot(f.head).due == 0 {
		f.head++
	}
	return due, true
}

// oldest returns when the oldest request went out; false if none is under way.
func (f *flight) oldest() (sent int64, ok bool) {
	if f.count == 0 {
		return 0, false
	}
	return f.slot(f.head).sent, true
}
