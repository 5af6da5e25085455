package host

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestCgroupLimit(t *testing.T) {
	for _, test := range []struct {
		what  string
		files map[string]string
		want  uint64
	}{
		{"none", map[string]string{}, 0},
		{"version 2, in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		{"version 2, without a limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"version 2, of an outer group", map[string]string{
			"proc/self/cgroup": "0::/a/b/c\n", "sys/fs/cgroup/a/b/c/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.max": "1000000\n",
			"sys/fs/cgroup/a/memory.max": "2000000\n",
		}, 1_000_000},
		{"version 1, in a container", map[string]string{
			"proc/self/cgroup":                              "12:cpu,cpuacct:/docker/x\n5:memory:/docker/x\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":    "268435456\n",
			"sys/fs/cgroup/memory/docker/y/memory.max":      "1\n",
			"sys/fs/cgroup/cpu/docker/x/memory.max":         "1\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":    "1\n",
			"sys/fs/cgroup/memory/docker/x/memory.stat":     "1\n",
			"sys/fs/cgroup/memory/docker/x/memory.swapness": "1\n",
		}, 256 << 20},
		{"version 1, without a limit", map[string]string{
			"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		{"both", map[string]string{
			"proc/self/cgroup": "5:hugetlb,memory:/m\n0::/u\n", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "300\n",
			"sys/fs/cgroup/unified/u/memory.max": "200\n",
		}, 200},
		{"nonsense", map[string]string{"proc/self/cgroup": "x\n::\n0::../..\n", "sys/fs/cgroup/memory.max": "-1\n"}, 0},
	} {
		t.Run(test.what, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range test.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			require.Equal(t, test.want, cgroupLimit(root))
		})
	}
}
