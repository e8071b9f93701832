package advice

import (
	"errors"
	"fmt"
	"testing"
)

func TestHintTravelsWithTheError(t *testing.T) {
	cause := errors.New("no iptables")
	err := fmt.Errorf("profile canal: %w", With(cause, "apt-get install iptables"))
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if got, want := err.Error(), "profile canal: no iptables"; got != want {
		t.Errorf("message %q, want %q: advice must stay out of it", got, want)
	}
	if got := Of(err); got != "apt-get install iptables" {
		t.Errorf("Of = %q", got)
	}
	if got := Of(fmt.Errorf("outer: %w", With(err, "nearer"))); got != "nearer" {
		t.Errorf("the nearest advice must win, got %q", got)
	}
	if With(nil, "x") != nil || Of(nil) != "" || Of(cause) != "" {
		t.Error("no error has no advice")
	}
}
