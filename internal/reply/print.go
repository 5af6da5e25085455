package reply

import (
	"fmt"
	"strconv"
	"strings"

	"headgate/internal/quoting"
)

// IsError reports whether the reply is an error.
func (v *Value) IsError() bool { return v.Kind == '-' || v.Kind == '!' }

// Pretty is the reply as redis-cli shows it on a terminal: with types, quotes and numbered elements. It ends with a line feed.
func (v *Value) Pretty() string {
	var b strings.Builder
	v.pretty(&b, "")
	return b.String()
}

// emptyNames are what aggregates without elements are shown as.
var emptyNames = map[byte]string{'*': "(empty array)", '%': "(empty hash)", '~': "(empty set)", '>': "(empty push)"}

// pretty writes the reply; all its lines but the first begin with prefix.
func (v *Value) pretty(b *strings.Builder, prefix string) {
	switch {
	case v.Null:
		b.WriteString("(nil)\n")
	case v.IsError():
		b.WriteString("(error) " + v.Text + "\n")
	case v.Kind == ':':
		b.WriteString("(integer) " + v.Text + "\n")
	case v.Kind == ',':
		b.WriteString("(double) " + v.Text + "\n")
	case v.Kind == '#':
		b.WriteString(truth(v.Text) + "\n")
	case v.Kind == '$':
		b.WriteString(quoting.Quote(v.Text) + "\n")
	case emptyNames[v.Kind] == "":
		b.WriteString(v.Text + "\n")
	case len(v.Items) == 0:
		b.WriteString(emptyNames[v.Kind] + "\n")
	default:
		v.prettyItems(b, prefix)
	}
}

func (v *Value) prettyItems(b *strings.Builder, prefix string) {
	each, mark := 1, ')'
	switch v.Kind {
	case '%':
		each, mark = 2, '#'
	case '~':
		mark = '~'
	}
	width := len(strconv.Itoa(len(v.Items) / each))
	inner := prefix + strings.Repeat(" ", width+2)
	for i := 0; i < len(v.Items); i += each {
		if i > 0 {
			b.WriteString(prefix)
		}
		fmt.Fprintf(b, "%*d%c ", width, i/each+1, mark)
		if each == 2 {
			var key strings.Builder
			v.Items[i].pretty(&key, inner)
			b.WriteString(strings.TrimSuffix(key.String(), "\n") + " => ")
		}
		v.Items[i+each-1].pretty(b, inner)
	}
}

// Raw is the reply as redis-cli writes it into a pipe: the text alone, an element on each line. It ends with a line feed.
func (v *Value) Raw() string {
	var b strings.Builder
	v.raw(&b)
	return b.String() + "\n"
}

func (v *Value) raw(b *strings.Builder) {
	switch {
	case v.Null:
	case v.Kind == '#':
		b.WriteString(truth(v.Text))
	case v.IsError():
		b.WriteString(v.Text + "\n")
	case emptyNames[v.Kind] == "":
		b.WriteString(v.Text)
	default:
		for i := range v.Items {
			switch {
			case i > 0 && v.Kind == '%' && i%2 == 1:
				b.WriteByte(' ')
			case i > 0:
				b.WriteByte('\n')
			}
			v.Items[i].raw(b)
		}
	}
}

func truth(text string) string {
	if text == "t" {
		return "(true)"
	}
	return "(false)"
}
