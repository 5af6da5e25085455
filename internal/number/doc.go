// Package number reads and writes numbers as C does on x86-64, because Redis
// keeps and shows its numbers in that form: doubles through strtod and
// "%.17g", 80-bit long doubles through strtold and "%.17Lf", and memory sizes
// with units. A whole number has exactly one text; any other text is rejected.
//
// All functions are pure and safe for concurrent use.
package number
