package scripting

import (
	"errors"
	"strings"

	"headgate/persistence/rdb"
	"headgate/server/command"
	"headgate/server/types"
)

func (h *Scripts) functionDump(c *command.Ctx) {
	enc := rdb.NewEncoder(c.Cfg.RDBCompression)
	enc.BeginPayload()
	for _, lib := range h.Engine.ListLibraries() {
		enc.Function([]byte(lib.Code))
	}
	enc.EndPayload()
	c.Reply.Bulk(enc.Take(nil))
}

// functionRestore implements FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]. If one library cannot be loaded, those that were there
// before stay, with what their functions remember.
func (h *Scripts) functionRestore(c *command.Ctx) {
	engine := h.Engine
	flush, replace := false, false
	switch {
	case len(c.Args) > 4:
		c.ErrSubcommandSyntax()
		return
	case len(c.Args) == 3 || c.Is(3, "APPEND"):
	case c.Is(3, "FLUSH"):
		flush = true
	case c.Is(3, "REPLACE"):
		replace = true
	default:
		c.Err("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
		return
	}
	body, err := rdb.CheckPayload(c.Args[2])
	if err != nil {
		c.Err(types.ErrPayload)
		return
	}
	putBack := engine.KeepLibraries()
	if flush {
		engine.DeleteLibraries()
	}
	err = rdb.ReadFunctions(body, func(code []byte) error {
		_, err := engine.LoadLibrary(code, replace)
		return err
	})
	if err == nil {
		c.EffectVerbatim()
		c.OK()
		return
	}
	putBack()
	c.Err(functionRestoreError(err))
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
