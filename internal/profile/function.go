package profile

// Function is a feature that users may need from a network in addition to its speed.
type Function struct {
	// Name is the name of the function. Letter represents it in narrow columns.
	Name, Letter string
	by           func(Profile) string
}

// NetworkPolicy and Encryption are the functions that a report checks when it recommends a profile.
var (
	NetworkPolicy = Function{"NetworkPolicy", "P", func(p Profile) string { return emptyIfNone(p.Policy) }}
	Encryption    = Function{"encryption", "E", func(p Profile) string {
		if p.Encapsulation == "wireguard" || p.Encapsulation == "ipsec" {
			return p.Encapsulation
		}
		return ""
	}}
)

// services is the function "Services": pods reach Services by their cluster addresses.
var services = Function{"Services", "S", func(p Profile) string { return emptyIfNone(p.Services) }}

// Expected are the functions that a cluster usually needs. A report mentions the expected functions that the best
// profile lacks.
var Expected = []Function{services, NetworkPolicy}

// Functions are all functions in report order.
var Functions = []Function{
	services, NetworkPolicy, Encryption,
	{"IPv6", "6", func(p Profile) string {
		if p.NoIPv6 != "" {
			return ""
		}
		return "yes"
	}},
}

// By returns what provides f in p, "" if nothing does.
func (f Function) By(p Profile) string { return f.by(p) }

// emptyIfNone returns the word of a profile's field Services or Policy, but "" for "none".
func emptyIfNone(word string) string {
	if word == "none" {
		return ""
	}
	return word
}
