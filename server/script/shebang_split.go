package script

import "headgate/server/resp"

// splitInline splits a line into words as an inline command is split.
func splitInline(line []byte) (words [][]byte, ok bool) {
	var reader resp.Reader
	var pool resp.Pool
	limits := resp.Limits{Inline: MaxScriptBytes, Multibulk: MaxScriptBytes, Bulk: MaxScriptBytes, Query: 2 * MaxScriptBytes}
	line = append(line, '\n')
	for len(line) > 0 {
		n := copy(reader.Space(&pool), line)
		reader.Received(n)
		line = line[n:]
		words, found, err := reader.Next(nil, &limits)
		if err != nil {
			return nil, false
		}
		if found {
			return words, true
		}
	}
	return nil, true
}
