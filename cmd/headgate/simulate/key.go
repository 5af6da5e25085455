package simulate

import (
	"errors"
	"fmt"
	"strings"
)

// template makes a line's key of text and of fields.
type template struct {
	parts  []part
	fields []string // that it needs, each once
}

// part is a text, or a field if text is empty.
type part struct {
	text  string
	field int
}

// parseTemplate reads $remote_addr:$request_uri. A name has letters, digits, _ and points, as $request.host; in braces it may have anything,
// as ${request.headers.X-Api-Key}. $$ is a dollar.
func parseTemplate(text string) (t template, err error) {
	if text == "" {
		return t, errors.New("--key is empty")
	}
	for text != "" {
		before, rest, found := strings.Cut(text, "$")
		if found && strings.HasPrefix(rest, "$") {
			before, text, found = before+"$", rest[1:], false
		} else {
			text = rest
		}
		if before != "" {
			t.parts = append(t.parts, part{text: before})
		}
		if !found {
			continue
		}
		var name string
		if name, text, err = fieldName(rest); err != nil {
			return t, err
		}
		t.parts = append(t.parts, part{field: t.index(name)})
	}
	if len(t.fields) == 0 {
		return t, errors.New("--key names no field, such as $remote_addr")
	}
	return t, nil
}

func fieldName(text string) (name, rest string, err error) {
	if inside, ok := strings.CutPrefix(text, "{"); ok {
		if name, rest, ok = strings.Cut(inside, "}"); !ok {
			return "", "", errors.New("--key: a { has no }")
		}
	} else {
		n := strings.IndexFunc(text, func(r rune) bool {
			return r != '_' && r != '.' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		})
		if n < 0 {
			n = len(text)
		}
		name = strings.TrimRight(text[:n], ".")
		rest = text[len(name):]
	}
	if name == "" {
		return "", "", fmt.Errorf("--key: a $ without a name before %q; $$ is a dollar", rest)
	}
	return name, rest, nil
}

// index is the place of a field among those that are needed.
func (t *template) index(name string) int {
	for i, f := range t.fields {
		if f == name {
			return i
		}
	}
	t.fields = append(t.fields, name)
	return len(t.fields) - 1
}

// render makes the key of a record, in memory of the caller's if it must. It is false for a line that lacks one of the fields.
func (t *template) render(r *record, into []byte) (key, memory []byte, ok bool) {
	if len(t.parts) == 1 {
		key = r.values[t.parts[0].field]
		return key, into, key != nil
	}
	into = into[:0]
	for _, p := range t.parts {
		if p.text != "" {
			into = append(into, p.text...)
			continue
		}
		v := r.values[p.field]
		if v == nil {
			return nil, into, false
		}
		into = append(into, v...)
	}
	return into, into, true
}
