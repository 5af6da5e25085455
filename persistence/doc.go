// Package persistence writes files so that a crash or a power cut leaves either the old contents or the new ones,
// never a mixture.
//
// All access to the disk goes through [FS], so that tests can make any operation fail and can watch their order. [OS] is the real
// one.
package persistence
