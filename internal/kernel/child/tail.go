package child

import "sync"

// Tail keeps the last 4 KiB that are written to it.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10

// Write appends b and keeps the last 4 KiB. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// String returns the kept bytes, at most 4 KiB.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
