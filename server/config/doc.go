// Package config is headgate's configuration: one table of directives from which the syntax of the configuration file, the
// command-line flags, the environment variables, CONFIG GET, CONFIG SET, CONFIG REWRITE, --help, docs/config.md and the sample headgate.conf derive.
//
// [Load] applies the layers in this order, later ones overriding earlier ones: the built-in defaults, the configuration file with the files
// that it includes, standard input if it is requested, HEADGATE_* environment variables, command-line flags. The result is a [Live],
// from which any goroutine reads an immutable [Config], and through which CONFIG SET and SIGHUP change it.
//
// To add a directive, add a field to Config and an entry to the table in directives.go, and run go generate.
package config

//go:generate go run ./internal/gendoc ../../docs/config.md ../../headgate.conf
