package adapter

import (
	"bytes"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for s, want := range map[string]float64{"1": 1, "0.5": 0.5, ".5": 0.5, "5.": 5, "-3": -3, "+3": 3, "1e3": 1000, "1.5E-3": 0.0015} {
		if got, err := Number(s); err != nil || got != want {
			t.Errorf("number(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for s, says := range map[string]string{
		"": "there is no number", "1.234,5": "another locale", "0,5": "another locale", "1,234.5": "another locale", "1 234,5": "another locale",
		"=1+1": "formula", "@SUM(A1)": "formula", "-2+3": "formula", "+cmd|' /C calc'!A0": "formula", "inf": "not a number", "NaN": "not a number", "0x10": "not a number",
		"1_000": "not a number", "1e400": "out of range", "1e9999": "not a number", "twelve": "not a number", "1 2": "not a number",
	} {
		if got, err := Number(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("number(%q) = %v, %v; want an error with %q", s, got, err, says)
		}
	}
}

// TestTwiceIsBounded: arrays in arrays without end are no reason to end the process.
func TestTwiceIsBounded(t *testing.T) {
	if err := Twice(bytes.Repeat([]byte("["), 10<<20)); err != nil {
		t.Error(err)
	}
	if err := Twice([]byte(strings.Repeat("[", 100) + `{"a":1,"a":2}`)); err == nil {
		t.Error("a key is there twice")
	}
}
