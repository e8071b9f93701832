package each

import (
	"errors"
	"testing"
)

// TestAtOnce: all run side by side, and their errors keep the order of the list.
func TestAtOnce(t *testing.T) {
	met := make(chan int)
	err := AtOnce([]string{"a", "b"}, func(i int, name string) error {
		select {
		case met <- i:
		case <-met:
		}
		return errors.New(name)
	})
	if err == nil || err.Error() != "a\nb" {
		t.Errorf("%v", err)
	}
	if err := AtOnce(nil, func(int, int) error { return errors.New("called") }); err != nil {
		t.Error(err)
	}
}
