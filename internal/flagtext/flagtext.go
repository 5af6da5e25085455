// Package flagtext words what package flag says as the help of this program's tools does.
package flagtext

import "regexp"

// named is what package flag says before the name of a flag, to which it gives one dash.
var named = regexp.MustCompile(`(for flag|not defined:|needs an argument:) -`)

// WithTwoDashes is the text of an error of package flag, in which flags have two dashes.
func WithTwoDashes(err error) string { return named.ReplaceAllString(err.Error(), "$1 --") }
