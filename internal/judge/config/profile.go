package config

import "github.com/cnibench/cnibench/internal/profile"

// known returns the profile called name, with what the configuration differs in.
func known(name string, but []string) Measured {
	p, _ := profile.Lookup(name) // that every name here is in the catalogue is tested
	return Measured{Profile: name, Title: p.Title, But: but}
}
