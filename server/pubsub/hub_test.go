package pubsub

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"headgate/server/command"

	"github.com/stretchr/testify/require"
)

var hubSeed = flag.Uint64("hub.seed", 0, "seed of the test that compares the hub with a model; 0 draws one")

// TestHubAgainstModel: whatever clients subscribe to and let go of, and however late what they leave is taken out, the hub knows who
// has subscribed to what, and in the end nothing is left.
func TestHubAgainstModel(t *testing.T) {
	const clients, names, steps = 4, 3 * command.RemainsPerClient, 20_000
	seed := *hubSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-hub.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := &Hub{Core: &command.Core{}}
	list := make([]*command.Client, clients)
	type sub struct {
		client int
		kind   topicKind
		name   string
	}
	model := map[sub]bool{}
	for i := range list {
		list[i] = &command.Client{}
	}
	check := func() {
		t.Helper()
		var of [clients][topicKinds]int
		audience := [topicKinds]map[string]int{}
		for kind := range audience {
			audience[kind] = map[string]int{}
		}
		for s := range model {
			of[s.client][s.kind]++
			audience[s.kind][s.name]++
		}
		for kind := range topicKinds {
			for i, cl := range list {
				require.Equal(t, of[i][kind], SubscriptionsOf(cl).Of(kind))
				require.Equal(t, of[i] != [topicKinds]int{}, cl.Subs != nil)
			}
			require.Equal(t, len(audience[kind]), h.Live[kind])
			for name, topic := range h.Topics[kind] {
				require.Equal(t, audience[kind][name], topic.live)
				require.GreaterOrEqual(t, len(topic.subscriptions), topic.live)
				for i, sub := range topic.subscriptions {
					require.Equal(t, i, sub.inTopic)
				}
			}
		}
		for i, topic := range h.Patterns {
			require.Equal(t, i, topic.place)
		}
	}
	end := func(i int, kind topicKind) {
		for sub := range model {
			if sub.client == i && sub.kind == kind {
				delete(model, sub)
			}
		}
		for subs := SubscriptionsOf(list[i]); subs != nil && subs[kind] != nil; subs = SubscriptionsOf(list[i]) {
			for _, sub := range subs[kind].list {
				h.retire(sub)
			}
			h.endSubscriptions(list[i], kind)
		}
	}
	for step := range steps {
		s := sub{random.IntN(clients), topicKind(random.IntN(int(topicKinds))), strconv.Itoa(random.IntN(names))}
		switch p := random.IntN(100); {
		case p < 70:
			h.Remains.Help()
			h.join(list[s.client], s.kind, []byte(s.name))
			model[s] = true
		case p < 98:
			h.leave(list[s.client], s.kind, s.name)
			delete(model, s)
		case p < 99:
			end(s.client, s.kind)
		default:
			h.Remains.TakeOut(random.IntN(2 * names))
		}
		if step%100 == 0 {
			check()
		}
	}
	for i := range list {
		for kind := range topicKinds {
			end(i, kind)
		}
	}
	check()
	for h.Remains.Slice() {
	}
	require.Zero(t, h.Remains.Bytes)
	require.Empty(t, h.Patterns)
	for _, topics := range h.Topics {
		require.Nil(t, topics)
	}
}
