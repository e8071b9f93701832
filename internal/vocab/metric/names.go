package metric

// Metrics of names that are resolved.
const (
	// ResolutionTime is a family.
	ResolutionTime       = "resolution_time"
	ResolutionRate       = "resolution_rate"
	QueryRate            = "query_rate"
	QueriesPerResolution = "queries_per_resolution"
	ResolutionsWaited    = "resolutions_waited"
	InsertFailed         = "conntrack_insert_failed"
	Clashes              = "conntrack_clashes"
)

const (
	dnsPage  = "docs/how-to/measure-dns.md"
	dnsUnits = "RFC 1035; resolv.conf(5)"
)

// resolutions are the metrics of names that are resolved.
func resolutions() []Metric {
	return []Metric{
		{Name: ResolutionRate, Title: "resolution rate", Unit: "1/s", Better: Higher, Headline: true,
			Definition: "Names resolved per second, each with all the queries that it takes.", Source: dnsPage},
		{Name: QueryRate, Title: "query rate", Unit: "1/s", Better: Neither, Definition: "DNS queries per second that the client sent for them.", Source: dnsUnits},
		{Name: ResolutionTime + ".p50", Title: "resolution time, median", Unit: "ns", Better: Lower, Headline: true,
			Definition: "Half of the names had an address after at most this long, all names of the search list included.", Source: dnsPage},
		{Name: ResolutionTime + ".p90", Title: "resolution time, 90th percentile", Unit: "ns", Better: Lower, Definition: "9 of 10 names had an address after at most this long.", Source: dnsPage},
		{Name: ResolutionTime + ".p95", Title: "resolution time, 95th percentile", Unit: "ns", Better: Lower, Definition: "19 of 20 names had an address after at most this long.", Source: dnsPage},
		{Name: ResolutionTime + ".p99", Title: "resolution time, 99th percentile", Unit: "ns", Better: Lower, Headline: true,
			Definition: "99 of 100 names had an address after at most this long.", Source: dnsPage},
		{Name: ResolutionTime + ".p99.9", Title: "resolution time, 99.9th percentile", Unit: "ns", Better: Lower,
			Definition: "999 of 1000 names had an address after at most this long.", Source: dnsPage},
		{Name: ResolutionTime + ".min", Title: "resolution time, minimum", Unit: "ns", Better: Lower, Definition: "The shortest resolution of the window.", Source: dnsPage},
		{Name: ResolutionTime + ".mean", Title: "resolution time, mean", Unit: "ns", Better: Lower, Definition: "The arithmetic mean of the resolution times.", Source: dnsPage},
		{Name: ResolutionTime + ".stddev", Title: "resolution time, standard deviation", Unit: "ns", Better: Lower, Definition: "The standard deviation of the resolution times.", Source: dnsPage},
		{Name: ResolutionTime + ".max", Title: "resolution time, maximum", Unit: "ns", Better: Lower, Headline: true,
			Definition: "The longest resolution of the window: 5 s and more where an answer was lost.", Source: dnsPage},
		{Name: QueriesPerResolution, Title: "queries per resolution", Unit: "ratio", Better: Neither,
			Definition: "Queries that a resolution took: two for each name that was asked for, and those that were sent again.", Source: dnsUnits},
		{Name: ResolutionsWaited, Title: "resolutions that waited for a timeout", Unit: "ratio", Better: Lower, Headline: true,
			Definition: "Of all resolutions, those that waited for a timeout of the resolver once or more, because an answer did not come.", Source: dnsUnits},
		{Name: InsertFailed, Title: "packets that the connection table did not take", Unit: "1", Better: Neither,
			Definition: "Packets of new connections that the nodes of the path dropped within the window, because another connection had the same addresses and ports.", Source: "nf_conntrack, insert_failed"},
		{Name: Clashes, Title: "races in the connection table", Unit: "1", Better: Neither,
			Definition: "Packets that met, within the window, an entry that another CPU had just made for their connection; this kernel let them pass, an older one dropped them.", Source: "nf_conntrack, clash_resolve"},
	}
}
