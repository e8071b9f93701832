package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// commandGroups are the groups of commands, in the order in which help lists them. A command that no group lists
// belongs to the last group.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"measure", "Measure", []string{"run", "explain", "journey", "diagnose", "lab", "doctor"}},
	{"read", "Read results", []string{"report", "compare", "check", "import"}},
	{"cluster", "Clusters", []string{"cni", "kube", "image"}},
	{"research", "Research", []string{"reproduce", "fidelity"}},
	{"other", "Other", nil},
}

// helpWidth and helpHeight are the size of a screen that help must fit.
const helpWidth, helpHeight = 80, 40

// setHelp makes helpPage the help of root and of all commands below it. It puts the commands into their groups, and adds
// the hidden flag --all.
func setHelp(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title + ":"})
	}
	for _, sub := range root.Commands() {
		sub.GroupID = commandGroups[len(commandGroups)-1].id
		for _, g := range commandGroups {
			if slices.Contains(g.commands, sub.Name()) {
				sub.GroupID = g.id
			}
		}
	}
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = io.WriteString(cmd.OutOrStdout(), helpPage(cmd))
	})
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("all") == nil && !cmd.DisableFlagParsing {
			cmd.Flags().Bool("all", false, "with --help: every flag in full")
			cmd.Flags().Lookup("all").Hidden = true
		}
		for _, sub := range cmd.Commands() {
			all(sub)
		}
	}
	all(root)
}

// helpPage returns the help of cmd: what fits on a screen, or with --all everything.
func helpPage(cmd *cobra.Command) string {
	everything := cmd.Flags().Changed("all")
	flags, left := flagList(cmd, everything)
	var b strings.Builder
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		b.WriteString("Usage: " + cmd.UseLine() + "\n")
	} else {
		b.WriteString("Usage: " + cmd.CommandPath() + " COMMAND\n")
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	b.WriteString(commandList(cmd) + flags)
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	head := ""
	for i, paragraph := range strings.Split(about, "\n\n") {
		text := wrapParagraph(paragraph) + "\n"
		if i > 0 && !everything && rowCount(head+text+b.String()) > helpHeight-2 {
			left = true
			break
		}
		head += text
	}
	if left {
		b.WriteString("\nMore: " + cmd.CommandPath() + " --help --all\n")
	} else if cmd.HasAvailableSubCommands() {
		b.WriteString("\nMore: " + cmd.CommandPath() + " COMMAND --help\n")
	}
	return head + b.String()
}

// rowCount returns how many rows text takes on a terminal of helpWidth.
func rowCount(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n += 1 + max(0, number.Width(strings.TrimSuffix(line, "\n"))-1)/helpWidth
	}
	return n
}

// wrapParagraph breaks a paragraph into lines of at most helpWidth. It does not change a paragraph with an indented line.
func wrapParagraph(paragraph string) string {
	if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
		return paragraph + "\n"
	}
	return strings.Join(number.Wrap(strings.ReplaceAll(paragraph, "\n", " "), helpWidth), "\n") + "\n"
}

// commandList returns the list of commands below cmd, by group if cmd has groups.
func commandList(cmd *cobra.Command) string {
	var b strings.Builder
	list := func(title, id string) {
		var lines []string
		for _, sub := range cmd.Commands() {
			if sub.GroupID == id && sub.IsAvailableCommand() && sub.Name() != "completion" {
				lines = append(lines, "  "+number.Left(sub.Name(), 12)+" "+sub.Short+"\n")
			}
		}
		if len(lines) > 0 {
			b.WriteString("\n" + title + "\n" + strings.Join(lines, ""))
		}
	}
	list("Commands:", "")
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	return b.String()
}

// flagList returns the list of flags of cmd: with everything, all flags in full; else a line for each common flag. left is
// true if flags, or parts of their texts, are left out.
func flagList(cmd *cobra.Command, everything bool) (list string, left bool) {
	ranked := false // some flags are for the first page alone
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, common := f.Annotations[isCommon]
		ranked = ranked || common
	})
	var b strings.Builder
	for _, g := range groups {
		set := pflag.NewFlagSet(string(g), pflag.ContinueOnError)
		set.SortFlags = false
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			own := groupOutput
			if named := f.Annotations[groupOf]; named != nil {
				own = named[0]
			}
			_, common := f.Annotations[isCommon]
			switch {
			case own != g || f.Hidden || f.Name == "help":
			case ranked && !everything && !common:
				left = true
			default:
				set.AddFlag(f)
			}
		})
		if !set.HasFlags() {
			continue
		}
		title := string(g)
		if !ranked {
			title = "Flags"
		}
		b.WriteString("\n" + title + ":\n")
		if everything {
			b.WriteString(set.FlagUsagesWrapped(helpWidth))
			continue
		}
		lines, cut := flagLines(set)
		left = left || cut
		b.WriteString(lines)
	}
	return b.String(), left
}

// flagLines returns a line for each flag. cut is true if any text was shortened.
func flagLines(set *pflag.FlagSet) (lines string, cut bool) {
	const most = 28
	heads := map[string]string{}
	width := 0
	set.VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		short := "    "
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		heads[f.Name] = strings.TrimRight("  "+short+"--"+f.Name+" "+name, " ")
		width = max(width, min(most, number.Width(heads[f.Name])))
	})
	var b strings.Builder
	set.VisitAll(func(f *pflag.Flag) {
		_, text := pflag.UnquoteUsage(f)
		head := number.Left(heads[f.Name], width)
		unless := ""
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			unless = " (default " + f.DefValue + ")"
		}
		said := shortenHelp(text, helpWidth-number.Width(head)-2-number.Width(unless))
		cut = cut || said != text
		fmt.Fprintf(&b, "%s  %s\n", head, said+unless)
	})
	return b.String(), cut
}

// shortenHelp returns the help text of a flag if it fits into room columns, else as many of its parts as fit.
func shortenHelp(text string, room int) string {
	if number.Width(text) <= room {
		return text
	}
	const least = 8
	best := ""
	for _, mark := range []string{";", ":", " (", ",", "."} {
		for i := 0; i < len(text); {
			at := strings.Index(text[i:], mark)
			if at < 0 {
				break
			}
			if part := text[:i+at]; number.Width(part) <= room && strings.Count(part, "(") == strings.Count(part, ")") && len(part) > len(best) {
				best = part
			}
			i += at + len(mark)
		}
	}
	if len(best) < least {
		return number.Truncate(text, room)
	}
	return best
}
