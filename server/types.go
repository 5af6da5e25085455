package server

// typeDeclarations lists the commands of keys and of all types of values: one slice for each file that declares some.
func typeDeclarations() [][]*Command {
	return [][]*Command{
		genericCommands, stringCommands, bitmapCommands, hashCommands, zsetCommands, hyperLogLogCommands, listCommands, setCommands, streamCommands,
		sortCommands,
	}
}
