package store

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// modelTyped is what a key should hold: one of these.
type modelTyped struct {
	hash map[string]string
	zset modelZSet
	list *[]string
	set  modelSet
}

func newModelTyped() modelTyped {
	return modelTyped{hash: map[string]string{}, zset: modelZSet{}, list: &[]string{}, set: modelSet{}}
}

func (v modelTyped) clone() modelTyped {
	list := slices.Clone(*v.list)
	return modelTyped{hash: maps.Clone(v.hash), zset: maps.Clone(v.zset), list: &list, set: maps.Clone(v.set)}
}

func (v modelTyped) empty() bool { return len(v.hash)+len(v.zset)+len(*v.list)+len(v.set) == 0 }

// TestCopiesAreIndependent copies, moves and swaps values of every type in every encoding, goes on changing originals and
// copies, and compares all of them with Go maps.
func TestCopiesAreIndependent(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			rnd := newRand(t)
			ks := New(Options{Databases: 2, Limits: limits})
			t.Cleanup(ks.Close)
			want := []map[string]modelTyped{{}, {}}
			for i := range *opsFlag / 30 {
				stepTyped(t, rnd, ks, want)
				if i%1000 == 0 {
					requireTyped(t, ks, want)
				}
			}
			requireTyped(t, ks, want)
		})
	}
}

// stepTyped runs one operation. The first letter of a name tells its type.
func stepTyped(t *testing.T, rnd *rand.Rand, ks *Keyspace, want []map[string]modelTyped) {
	i, j := rnd.IntN(2), rnd.IntN(2)
	db, target := ks.DB(i), ks.DB(j)
	kind := string("hzls"[rnd.IntN(4)])
	name, other := kind+strconv.Itoa(rnd.IntN(4)), kind+strconv.Itoa(rnd.IntN(4))
	k, to := testKey(ks, "%s", name), testKey(ks, "%s", other)
	v, there := want[i][name]
	_, taken := want[j][other]
	switch rnd.IntN(50) {
	case 0, 1:
		replace := rnd.IntN(2) == 0
		ok := db.Copy(k, target, to, replace, 0)
		require.Equal(t, there && (!taken || replace) && (i != j || name != other), ok)
		if ok {
			want[j][other] = v.clone()
		}
	case 2:
		_, taken := want[j][name]
		ok := db.Move(k, target, 0)
		require.Equal(t, there && !taken && i != j, ok)
		if ok {
			want[j][name] = v
			delete(want[i], name)
		}
	case 3:
		ks.Swap(i, j, 0)
		want[i], want[j] = want[j], want[i]
	case 4:
		if e, ok := db.Find(k, 0); ok && rnd.IntN(2) == 0 {
			e.Delete()
			delete(want[i], name)
		}
	default:
		if !there {
			v = newModelTyped()
			want[i][name] = v
		}
		changeTyped(t, rnd, db, k, v)
		if v.empty() {
			delete(want[i], name)
		}
	}
}

// changeTyped changes some members. It now and then adds many, so that a big table splits.
func changeTyped(t *testing.T, rnd *rand.Rand, db *DB, k Key, v modelTyped) {
	n, few := 1+rnd.IntN(5), 100
	if rnd.IntN(200) == 0 {
		n, few = 700, 3000
	}
	for range n {
		member := strconv.Itoa(rnd.IntN(few))
		score := float64(rnd.IntN(50))
		remove := rnd.IntN(3) == 0
		switch k.Name[0] {
		case 'l':
			changeList(t, rnd, db, k, v.list, member)
			continue
		case 's':
			changeSet(t, db, k, v.set, member, remove)
			continue
		case 'h':
			h, err := db.HashCreate(k, 0)
			require.NoError(t, err)
			if remove {
				h.Delete([]byte(member))
				delete(v.hash, member)
				continue
			}
			value := string(randomName(rnd, 9))
			h.Set([]byte(member), []byte(value))
			v.hash[member] = value
			continue
		}
		z, err := db.ZSetCreate(k, 0)
		require.NoError(t, err)
		if remove {
			z.Remove([]byte(member))
			delete(v.zset, member)
			continue
		}
		z.Add(score, []byte(member))
		v.zset.add(score, member)
	}
}

// requireTyped compares both databases and checks their invariants.
func requireTyped(t *testing.T, ks *Keyspace, want []map[string]modelTyped) {
	t.Helper()
	for i, keys := range want {
		db := ks.DB(i)
		require.Equal(t, len(keys), db.Len())
		for name, v := range keys {
			k := testKey(ks, "%s", name)
			switch name[0] {
			case 'l':
				requireList(t, *v.list, db, k)
				continue
			case 's':
				requireSet(t, v.set, db, k)
				continue
			case 'h':
				h, _, err := db.Hash(k, 0)
				require.NoError(t, err)
				require.Equal(t, len(v.hash), h.Len())
				for field, value := range v.hash {
					held, ok := h.Get([]byte(field))
					require.True(t, ok)
					require.Equal(t, value, string(held))
				}
				continue
			}
			z, _, err := db.ZSet(k, 0)
			require.NoError(t, err)
			sorted := v.zset.sorted()
			require.Equal(t, len(sorted), z.Len())
			for rank, e := range sorted {
				member, score := z.AtRank(rank)
				require.Equal(t, e, modelEntry{string(member), score})
				found, ok := z.Rank(member)
				require.True(t, ok)
				require.Equal(t, rank, found)
			}
		}
		checkDB(t, db, 0)
	}
}

// TestCopyOfABigString changes the original in place, as APPEND and SETRANGE do.
func TestCopyOfABigString(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	from, to := testKey(ks, "from"), testKey(ks, "to")
	long := make([]byte, 2*maxBlock)
	ks.DB(0).SetString(from, long, 50)
	require.True(t, ks.DB(0).Copy(from, ks.DB(3), to, false, 0))
	_, err := ks.DB(0).SetRange(from, 0, 0, []byte("changed"))
	require.NoError(t, err)
	e, ok := ks.DB(3).Find(to, 0)
	require.True(t, ok)
	require.Equal(t, long, e.Bytes(nil))
	require.EqualValues(t, 50, e.ExpireAt())
	require.False(t, ks.DB(3).Copy(to, ks.DB(0), from, false, 0), "taken")
	require.False(t, ks.DB(3).Copy(to, ks.DB(0), from, true, 51), "past its time")
	require.Equal(t, 0, ks.DB(3).Len())
}
