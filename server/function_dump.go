package server

import (
	"errors"
	"strings"

	"headgate/persistence/rdb"
)

func (h *Scripts) functionDump(c *Ctx) {
	enc := rdb.NewEncoder(c.cfg.RDBCompression)
	enc.BeginPayload()
	for _, lib := range h.engine.ListLibraries() {
		enc.Function([]byte(lib.Code))
	}
	enc.EndPayload()
	c.reply.Bulk(enc.Take(nil))
}

// functionRestore implements FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]. If one library cannot be loaded, those that were there
// before are loaded again.
func (h *Scripts) functionRestore(c *Ctx) {
	engine := h.engine
	flush, replace := false, false
	switch {
	case len(c.args) > 4:
		c.errSubcommandSyntax()
		return
	case len(c.args) == 3 || c.is(3, "APPEND"):
	case c.is(3, "FLUSH"):
		flush = true
	case c.is(3, "REPLACE"):
		replace = true
	default:
		c.err("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
		return
	}
	body, err := rdb.CheckPayload(c.args[2])
	if err != nil {
		c.err(errPayload)
		return
	}
	old := engine.ListLibraries()
	if flush {
		engine.FlushLibraries()
	}
	err = rdb.ReadFunctions(body, func(code []byte) error {
		_, err := engine.LoadLibrary(code, replace)
		return err
	})
	if err == nil {
		c.effectVerbatim()
		c.ok()
		return
	}
	engine.FlushLibraries()
	for _, lib := range old {
		if _, err := engine.LoadLibrary([]byte(lib.Code), false); err != nil {
			c.core.log.Error("a library of functions is lost: it cannot be loaded again", "library", lib.Name, "err", err)
		}
	}
	c.err(functionRestoreError(err))
}

// functionRestoreError is the reply for a library that cannot be restored.
func functionRestoreError(err error) string {
	var damaged *rdb.Error
	if errors.As(err, &damaged) {
		return "ERR given type is not a function"
	}
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "ERR Library '"); ok {
		text = "ERR Library " + strings.Replace(name, "' already", " already", 1)
	}
	return text
}
