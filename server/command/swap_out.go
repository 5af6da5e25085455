package command

// SwapOut removes list[i] by putting the last one into its place.
func SwapOut[T any](list []*T, i int) []*T {
	last := len(list) - 1
	list[i] = list[last]
	list[last] = nil
	if last == 0 {
		return nil
	}
	return list[:last]
}
