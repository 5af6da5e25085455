// Package cluster answers clients in cluster mode, which ask first where each slot lies: one primary, and the replicas that it knows, have all of
// them (cluster-enabled emulated). There is no gossip, no slot ever moves, and a node answers without asking others.
//
// What clients ask is described in the Redis Cluster specification (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/) and
// by the pages of CLUSTER SLOTS, CLUSTER SHARDS and CLUSTER NODES; the replies have the form of redis-server 7.0's, byte for byte.
//
// nodes.go lists the nodes, commands.go reports them, and moved.go sends clients of a replica on to its primary.
package cluster
