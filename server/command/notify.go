package command

import (
	"strconv"

	"headgate/server/config"
	"headgate/store"
)

// Key-space events: each reports one thing that has happened to one key, as a message on the channels __keyspace@<db>__:<key> and
// __keyevent@<db>__:<event>. Commands send theirs with Ctx.Notify, at the point where redis-server does; what happens to keys beside
// what a command is about (one is new, one has expired) comes from the store, by way of observer.

// Notify publishes an event, if notify-keyspace-events asks for its class.
func (c *Ctx) Notify(class config.Events, event string, key []byte) {
	if c.Cfg.NotifyEvents&class != 0 {
		c.Core.publishEvent(c.DB, event, key)
	}
}

// NotifyIn is Notify for a key of another database.
func (c *Ctx) NotifyIn(db *store.DB, class config.Events, event string, key []byte) {
	if c.Cfg.NotifyEvents&class != 0 {
		c.Core.publishEvent(db, event, key)
	}
}

// NotifyDeleted publishes that a key is deleted, if gone is true: for commands that delete a value with its last element.
func (c *Ctx) NotifyDeleted(gone bool, key []byte) {
	if gone {
		c.Notify(config.EventGeneric, "del", key)
	}
}

// Missed publishes that a key was looked up for reading and does not exist.
func (c *Ctx) Missed(key []byte) { c.Notify(config.EventMiss, "keymiss", key) }

// Settle removes the key if it is past its time, for a command that otherwise would not look whether it is: who listens for events
// wants to know.
func (c *Ctx) Settle(k store.Key) {
	if c.Cfg.NotifyEvents != 0 {
		c.DB.Look(k, c.Now)
	}
}

// Replacing has a key that is deleted to be added again not pass for a new one. The function it returns ends that.
func (c *Ctx) Replacing() func() {
	c.Core.replacing = true
	return func() { c.Core.replacing = false }
}

// publishEvent sends an event's messages.
func (s *Core) publishEvent(db *store.DB, event string, key []byte) {
	events := s.Config.Get().NotifyEvents
	if events&config.EventKeyspace != 0 {
		s.eventChannel = append(appendEventPrefix(s.eventChannel[:0], "__keyspace@", db), key...)
		s.Hooks.Publish(s.eventChannel, []byte(event))
	}
	if events&config.EventKeyevent != 0 {
		s.eventChannel = append(appendEventPrefix(s.eventChannel[:0], "__keyevent@", db), event...)
		s.Hooks.Publish(s.eventChannel, key)
	}
	if cap(s.eventChannel) > KeptMessage {
		s.eventChannel = nil
	}
}

func appendEventPrefix(dst []byte, prefix string, db *store.DB) []byte {
	dst = strconv.AppendInt(append(dst, prefix...), int64(db.Index()), 10)
	return append(dst, "__:"...)
}

// ObserveKeys has the store report changes if key-space events or tracking need them.
func (s *Core) ObserveKeys(cfg *config.Config) {
	if cfg.NotifyEvents != 0 || s.Gate.Has(GateTracking) {
		s.Keys.SetObserver(observer{s})
	} else {
		s.Keys.SetObserver(nil)
	}
}

// observer is notified of the changes of keys. It runs with the executor's lock held.
type observer struct{ core *Core }

// Changed implements store.Observer.
func (o observer) Changed(_ *store.DB, name []byte) {
	s := o.core
	if !s.Gate.Has(GateTracking) {
		return
	}
	var by *Client
	if s.Running != nil {
		by = s.Running.Client
	}
	s.Hooks.KeyChanged(name, by)
}

// Created implements store.Observer.
func (o observer) Created(db *store.DB, name []byte) {
	s := o.core
	if !s.replacing && s.Config.Get().NotifyEvents&config.EventNew != 0 {
		s.publishEvent(db, "new", name)
	}
}

// Expired implements store.Observer.
func (o observer) Expired(db *store.DB, name []byte) {
	o.gone(db, name, config.EventExpired, "expired")
}

// Evicted implements store.Observer.
func (o observer) Evicted(db *store.DB, name []byte) {
	o.gone(db, name, config.EventEvicted, "evicted")
}

// gone publishes the removal of a key that no command has removed.
func (o observer) gone(db *store.DB, name []byte, class config.Events, event string) {
	s := o.core
	if s.Config.Get().NotifyEvents&class != 0 {
		s.publishEvent(db, event, name)
	}
	if s.Gate.Has(GateTracking) {
		s.Hooks.KeyChanged(name, nil)
	}
}
