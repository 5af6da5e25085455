package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEmit: what a sink is given is what was written, whatever form the store keeps it in.
func TestEmit(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			key := func(name string) Key { return ks.Key([]byte(name)) }
			db.SetInt(key("int"), -42, 0)
			db.SetText(key("text"), []byte("some text"), 7)
			hash, err := db.HashCreate(key("hash"), 0)
			require.NoError(t, err)
			hash.Set([]byte("field"), []byte("value"))
			hash.Set(nil, nil)
			zset, err := db.ZSetCreate(key("zset"), 0)
			require.NoError(t, err)
			zset.Add(2.5, []byte("two"))
			zset.Add(-1, []byte("one"))
			list, _, err := db.List(key("list"), 0)
			require.NoError(t, err)
			for _, element := range []string{"first", "", "last"} {
				list.Push(false, []byte(element))
			}
			texts, whole := openSet(t, db, key("texts")), openSet(t, db, key("whole"))
			for _, member := range []string{"a", "", "member"} {
				require.True(t, texts.Add([]byte(member)))
			}
			for _, member := range []string{"70000", "-3"} {
				require.True(t, whole.Add([]byte(member)))
			}
			require.Equal(t, map[string]string{
				"0/int":   `0 string "-42"`,
				"0/text":  `7 string "some text"`,
				"0/hash":  `0 hash ""="" "field"="value"`,
				"0/zset":  `0 zset "one"=-1 "two"=2.5`,
				"0/list":  `0 list 1 "last" 2 "" 3 "first"`,
				"0/texts": `0 set "" "a" "member"`,
				"0/whole": `0 set "-3" "70000"`,
			}, contentsNow(t, ks))
		})
	}
}
