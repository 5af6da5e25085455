package types

import (
	"headgate/server/command"
)

// Declarations are the commands of keys and of all types of values: one slice for each file that declares some.
func Declarations() [][]*command.Command {
	return [][]*command.Command{
		genericCommands, stringCommands, bitmapCommands, hashCommands, zsetCommands, hyperLogLogCommands, listCommands, setCommands, streamCommands,
		sortCommands,
	}
}
