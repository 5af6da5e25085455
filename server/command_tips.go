package server

// commandTips are what COMMAND INFO tells clients of clusters: to which nodes a command goes, how their replies make one, and what
// of a reply depends on more than the data. Each line holds for the commands named behind it.
var commandTips = []struct {
	tips     string
	commands string
}{
	{"request_policy:multi_shard response_policy:all_succeeded",
		"mset"},
	{"request_policy:all_shards nondeterministic_output",
		"randomkey"},
	{"nondeterministic_output",
		"client|info client|list cluster|bumpepoch cluster|count-failure-reports cluster|getkeysinslot cluster|info " +
			"cluster|links cluster|nodes cluster|replicas cluster|shards cluster|slaves " +
			"cluster|slots dump hrandfield hscan lastsave object|encoding object|freq object|idletime object|refcount pttl " +
			"spop srandmember sscan time ttl xadd xautoclaim xclaim xinfo|consumers xpending xtrim zrandmember zscan"},
	{"request_policy:all_shards response_policy:all_succeeded",
		"flushall flushdb function|delete function|flush function|load function|restore memory|purge ping"},
	{"request_policy:all_shards response_policy:one_succeeded",
		"function|kill script|kill"},
	{"nondeterministic_output_order",
		"command command|docs command|info command|list function|list hgetall hkeys hvals sdiff sinter smembers sunion"},
	{"nondeterministic_output request_policy:all_shards response_policy:special",
		"function|stats info memory|doctor memory|malloc-stats memory|stats"},
	{"request_policy:all_shards nondeterministic_output_order",
		"keys"},
	{"request_policy:all_shards response_policy:agg_logical_and",
		"script|exists"},
	{"request_policy:all_nodes response_policy:all_succeeded",
		"config|set latency|reset script|flush script|load slowlog|reset"},
	{"request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
		"slowlog|len"},
	{"request_policy:all_nodes nondeterministic_output",
		"slowlog|get"},
	{"request_policy:multi_shard response_policy:agg_min",
		"msetnx"},
	{"request_policy:multi_shard response_policy:agg_sum",
		"del exists touch unlink"},
	{"request_policy:multi_shard",
		"mget"},
	{"nondeterministic_output request_policy:all_nodes response_policy:special",
		"latency|doctor latency|graph latency|histogram latency|history latency|latest"},
	{"request_policy:all_shards response_policy:agg_sum",
		"dbsize"},
	{"nondeterministic_output request_policy:special",
		"scan"},
	{"request_policy:all_shards response_policy:agg_min",
		"wait"},
}
