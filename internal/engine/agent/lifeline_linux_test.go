package agent

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnibench/cnibench/internal/control"
)

// TestLifeline has a controller that beats for many times the limit, and then goes without an end of the stream.
func TestLifeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 15 * time.Second
		in, controller := io.Pipe()
		began := time.Now()
		ctx, alive := Lifeline(t.Context(), in, limit)
		const beats = 20
		go func() {
			enc := control.NewEncoder(controller)
			for range beats {
				time.Sleep(limit / 3)
				if err := enc.Encode(control.Message{Type: control.TypeHeartbeat}); err != nil {
					t.Error(err)
				}
			}
		}()
		go io.Copy(io.Discard, alive)
		<-ctx.Done()
		if got, want := time.Since(began), beats*limit/3+limit; got != want {
			t.Errorf("cut after %s, want %s", got, want)
		}
		if err := context.Cause(ctx); !strings.Contains(err.Error(), "no message from the controller for 15s") {
			t.Errorf("the cause is %v", err)
		}
		in.Close()
	})
}

// TestServeEndsByItsLifeline wants the cause from Serve, and a heartbeat of the controller to be no fault.
func TestServeEndsByItsLifeline(t *testing.T) {
	in, controller := io.Pipe()
	defer controller.Close()
	ctx, alive := Lifeline(t.Context(), in, 50*time.Millisecond)
	served := make(chan error, 1)
	var out bytes.Buffer
	go func() { served <- Serve(ctx, alive, &out, "test") }()
	if err := control.NewEncoder(controller).Encode(control.Message{Type: control.TypeHeartbeat}); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "no message from the controller") {
		t.Errorf("Serve returns %v", err)
	}
	if strings.Contains(out.String(), `"error"`) {
		t.Errorf("a heartbeat is refused: %s", out.String())
	}
}
