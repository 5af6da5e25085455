package server

import (
	"strconv"

	"headgate/server/config"
	"headgate/store"
)

// Key-space events: each tells of one thing that has happened to one key, as a message on the channels __keyspace@<db>__:<key> and
// __keyevent@<db>__:<event>. Commands send theirs with Ctx.notify, at the point where redis-server does; what happens to keys beside
// what a command is about (one is new, one has expired) comes from the store, by way of observer.

// notify tells of an event, if its class is asked for.
func (c *Ctx) notify(class config.Events, event string, key []byte) {
	if c.cfg.NotifyEvents&class != 0 {
		c.core.publishEvent(c.db, event, key)
	}
}

// notifyIn is notify for a key of another database.
func (c *Ctx) notifyIn(db *store.DB, class config.Events, event string, key []byte) {
	if c.cfg.NotifyEvents&class != 0 {
		c.core.publishEvent(db, event, key)
	}
}

// notifyDeleted tells that a key is gone, if it is: for commands that delete a value with its last element.
func (c *Ctx) notifyDeleted(gone bool, key []byte) {
	if gone {
		c.notify(config.EventGeneric, "del", key)
	}
}

// missed tells that a reader's key is not there.
func (c *Ctx) missed(key []byte) { c.notify(config.EventMiss, "keymiss", key) }

// settle removes the key if it is past its time, for a command that otherwise would not look whether it is: who listens for events
// wants to know.
func (c *Ctx) settle(k store.Key) {
	if c.cfg.NotifyEvents != 0 {
		c.db.Look(k, c.now)
	}
}

// replacing has a key that is deleted to be added again not pass for a new one. The function it returns ends that.
func (c *Ctx) replacing() func() {
	c.core.replacing = true
	return func() { c.core.replacing = false }
}

// publishEvent sends an event's messages.
func (s *Core) publishEvent(db *store.DB, event string, key []byte) {
	events := s.config.Get().NotifyEvents
	if events&config.EventKeyspace != 0 {
		s.eventChannel = append(appendEventPrefix(s.eventChannel[:0], "__keyspace@", db), key...)
		s.hooks.publish(s.eventChannel, []byte(event))
	}
	if events&config.EventKeyevent != 0 {
		s.eventChannel = append(appendEventPrefix(s.eventChannel[:0], "__keyevent@", db), event...)
		s.hooks.publish(s.eventChannel, key)
	}
	if cap(s.eventChannel) > keptMessage {
		s.eventChannel = nil
	}
}

func appendEventPrefix(dst []byte, prefix string, db *store.DB) []byte {
	dst = strconv.AppendInt(append(dst, prefix...), int64(db.Index()), 10)
	return append(dst, "__:"...)
}

// observeKeys has the store tell of changes if somebody wants to hear of them.
func (s *Core) observeKeys(cfg *config.Config) {
	if cfg.NotifyEvents != 0 || s.gate.has(gateTracking) {
		s.keys.SetObserver(observer{s})
	} else {
		s.keys.SetObserver(nil)
	}
}

// observer hears of the changes of keys. It runs with the executor's lock held.
type observer struct{ core *Core }

// Changed implements store.Observer.
func (o observer) Changed(_ *store.DB, name []byte) {
	s := o.core
	if !s.gate.has(gateTracking) {
		return
	}
	var by *Client
	if s.running != nil {
		by = s.running.client
	}
	s.hooks.keyChanged(name, by)
}

// Created implements store.Observer.
func (o observer) Created(db *store.DB, name []byte) {
	s := o.core
	if !s.replacing && s.config.Get().NotifyEvents&config.EventNew != 0 {
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

// gone tells of a key that no command has removed.
func (o observer) gone(db *store.DB, name []byte, class config.Events, event string) {
	s := o.core
	if s.config.Get().NotifyEvents&class != 0 {
		s.publishEvent(db, event, name)
	}
	if s.gate.has(gateTracking) {
		s.hooks.keyChanged(name, nil)
	}
}
