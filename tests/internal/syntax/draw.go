package syntax

import "math/rand/v2"

// maxRepeats bounds an argument that may be there often, when it is drawn.
const maxRepeats = 4

// Draw draws arguments as a command is written. The same seed draws the same ones.
type Draw struct {
	Rand   *rand.Rand
	Choose func(of []Argument) Argument // chooses one of several that exclude each other
	Value  func(a Argument) string      // draws one that is no word of the command's own, and has no parts
}

// Arguments appends arguments to out: a third of those that are optional, and up to maxRepeats of those that may be there often.
func (d *Draw) Arguments(args []Argument, out []string) []string {
	for _, a := range args {
		if a.Optional && d.Rand.IntN(3) > 0 {
			continue
		}
		repeats := 1
		if a.Multiple {
			repeats += d.Rand.IntN(maxRepeats)
		}
		for i := range repeats {
			if a.Token != "" && a.Kind != "pure-token" && (i == 0 || a.MultipleToken) {
				out = append(out, a.Token)
			}
			out = d.argument(a, out)
		}
	}
	return out
}

func (d *Draw) argument(a Argument, out []string) []string {
	switch a.Kind {
	case "block":
		return d.Arguments(a.Parts, out)
	case "oneof":
		choice := d.Choose(a.Parts)
		choice.Optional = false
		return d.Arguments([]Argument{choice}, out)
	case "pure-token":
		return append(out, a.Token)
	}
	return append(out, d.Value(a))
}
