package stringlib

// Character classes of the C locale.

func isLower(c byte) bool { return c-'a' < 26 }
func isUpper(c byte) bool { return c-'A' < 26 }
func isAlpha(c byte) bool { return c|0x20-'a' < 26 }
func isDigit(c byte) bool { return c-'0' < 10 }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isGraph(c byte) bool { return c > ' ' && c < 0x7f }
func isPunct(c byte) bool { return isGraph(c) && !isAlnum(c) }
func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }
func isCntrl(c byte) bool { return c < ' ' || c == 0x7f }
func isHex(c byte) bool   { return isDigit(c) || c|0x20-'a' < 6 }

func toLower(c byte) byte {
	if isUpper(c) {
		return c + ('a' - 'A')
	}
	return c
}

func toUpper(c byte) byte {
	if isLower(c) {
		return c - ('a' - 'A')
	}
	return c
}

// matchesClass reports whether c is of the class that a letter behind % names:
// an upper-case letter is the complement of the lower-case one, and anything
// that names no class stands for itself.
func matchesClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isAlpha(c)
	case 'c':
		in = isCntrl(c)
	case 'd':
		in = isDigit(c)
	case 'l':
		in = isLower(c)
	case 'p':
		in = isPunct(c)
	case 's':
		in = isSpace(c)
	case 'u':
		in = isUpper(c)
	case 'w':
		in = isAlnum(c)
	case 'x':
		in = isHex(c)
	case 'z':
		in = c == 0
	default:
		return c == class
	}
	return in != isUpper(class)
}
