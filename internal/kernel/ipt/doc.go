// Package ipt loads iptables rules and IP sets into network namespaces, and reads them back with their counters. It
// knows the programs and their quirks, but not the meaning of the rules.
//
//	tool, err := ipt.Find(ctx, ipt.Auto, false)          // nft flavour where it works, else legacy
//	sets, err := ipt.FindIPSet(ctx)                      // only for rules that match IP sets
//	err = sets.Restore(ctx, ns, setsText)                // first: a rule cannot name a set that is not there
//	err = tool.Restore(ctx, ns, node.String())           // one iptables-restore; replaces the tables that the text names
//	text, err := tool.Save(ctx, ns, "filter")            // for ParseSave
//
// iptables comes in two flavours that keep their rules apart: "nft" programs nf_tables, "legacy" the older x_tables. A
// node uses one of them, and which one is part of what is measured.
//
// Programs run inside the namespace and die with this program. The legacy flavour takes a machine-wide lock file; here
// each run has its own lock, so it neither waits for the host's iptables nor leaves a file behind.
//
// A missing program and a refused rule are errors with advice: what to install, or which line was refused.
package ipt
