package server

// These are sub-commands of CLIENT for client-side caching, with CLIENT TRACKING below.
var (
	clientCachingCommand = &Command{
		Name: "caching", Since: "6.0.0", Complexity: "O(1)",
		Summary: "Track the keys of the next command, or leave them out, against what the client's mode would do.",
		Arity:   3, Flags: clientFlags,
		Args: []Arg{oneOf("mode", tok("YES"), tok("NO"))}, Reply: ReplySimple, Handler: clientCaching,
	}
	clientGetRedirCommand = &Command{
		Name: "getredir", Since: "6.0.0", Complexity: "O(1)",
		Summary: "Return the number of the connection that invalidations are sent to instead, 0 if that is this one, -1 without tracking.",
		Arity:   2, Flags: clientFlags, Reply: ReplyInteger, Handler: clientGetRedir,
	}
	clientTrackingInfoCommand = &Command{
		Name: "trackinginfo", Since: "6.2.0", Complexity: "O(1)",
		Summary: "Describe how the connection tracks keys.",
		Arity:   2, Flags: clientFlags, Reply: ReplyMap, Handler: clientTrackingInfo,
	}
)

// clientTrackingCommand is CLIENT TRACKING.
func (h *Hub) clientTrackingCommand() *Command {
	return &Command{
		Name: "tracking", Since: "6.0.0", Complexity: "O(1), and O(n) in the number of prefixes",
		Summary: "Have the client told of changes to keys that it has read, or in broadcasting mode to keys with a prefix.",
		Arity:   -3, Flags: clientFlags,
		Args: []Arg{
			oneOf("status", tok("ON"), tok("OFF")), integer("client-id").after("REDIRECT").opt(),
			str("prefix").after("PREFIX").multi().eachWithToken().opt(), tok("BCAST").opt(), tok("OPTIN").opt(), tok("OPTOUT").opt(), tok("NOLOOP").opt(),
		},
		Reply: ReplySimple, Handler: h.clientTracking,
	}
}

const (
	errTrackingBcast      = "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	errTrackingOpt        = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	errTrackingOptBcast   = "ERR OPTIN and OPTOUT are not compatible with BCAST"
	errTrackingOptBoth    = "ERR You can't specify both OPTIN mode and OPTOUT mode"
	errTrackingPrefix     = "ERR PREFIX option requires BCAST mode to be enabled"
	errTrackingOneTarget  = "ERR A client can only redirect to a single other client"
	errTrackingNoTarget   = "ERR The client ID you want redirect to does not exist"
	errTrackingPrefixes   = "ERR too many prefixes"
	errCachingOff         = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
	errCachingYes         = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
	errCachingNo          = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
	errPrefixesOverlapTwo = "ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single client must not overlap."
	errPrefixesOverlapOld = "ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client must not overlap."
)

func (h *Hub) clientTracking(c *Ctx) {
	mode, prefixes, ok := c.trackingOptions()
	if !ok {
		return
	}
	switch {
	case c.is(2, "OFF"):
		h.untrack(c.client)
	case !c.is(2, "ON"):
		c.err(errSyntax)
		return
	default:
		if refusal := refuseTracking(trackingOf(c.client), &mode, prefixes); refusal != "" {
			c.err(refusal)
			return
		}
		if mode.bcast && !c.prefixesFit(prefixes) {
			return
		}
		h.track(c.client, mode, prefixes)
	}
	c.ok()
}

// trackingOptions parses the words from args[3] on, or sends the error and returns false.
func (c *Ctx) trackingOptions() (mode trackingMode, prefixes []string, ok bool) {
	for i := 3; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		switch {
		case c.is(i, "REDIRECT") && more:
			i++
			if mode.redirect != 0 {
				c.err(errTrackingOneTarget)
				return mode, nil, false
			}
			id, ok := c.integer(i)
			if !ok {
				return mode, nil, false
			}
			if c.core.clients.byID[id] == nil {
				c.err(errTrackingNoTarget)
				return mode, nil, false
			}
			mode.redirect = id
		case c.is(i, "BCAST"):
			mode.bcast = true
		case c.is(i, "OPTIN"):
			mode.optIn = true
		case c.is(i, "OPTOUT"):
			mode.optOut = true
		case c.is(i, "NOLOOP"):
			mode.noLoop = true
		case c.is(i, "PREFIX") && more:
			i++
			prefixes = append(prefixes, string(c.args[i]))
		default:
			c.err(errSyntax)
			return mode, nil, false
		}
	}
	return mode, prefixes, true
}

// refuseTracking returns the error of a mode that contradicts itself or the one that holds, which may be nil.
func refuseTracking(old, mode *trackingMode, prefixes []string) string {
	switch {
	case len(prefixes) > 0 && !mode.bcast:
		return errTrackingPrefix
	case old != nil && old.bcast != mode.bcast:
		return errTrackingBcast
	case mode.bcast && (mode.optIn || mode.optOut):
		return errTrackingOptBcast
	case mode.optIn && mode.optOut:
		return errTrackingOptBoth
	case old != nil && (mode.optIn && old.optOut || mode.optOut && old.optIn):
		return errTrackingOpt
	}
	return ""
}

// prefixesFit checks that of the prefixes that the client has and those that it asks for none begins with another, or sends the error
// and returns false.
func (c *Ctx) prefixesFit(asked []string) bool {
	var held []string
	if mode := trackingOf(c.client); mode != nil {
		held = mode.prefixes()
	}
	if len(held)+len(asked) > maxTrackingPrefixes {
		c.err(errTrackingPrefixes)
		return false
	}
	for i, prefix := range asked {
		for _, other := range held {
			if overlap(prefix, other) {
				c.errf(errPrefixesOverlapOld, prefix, other)
				return false
			}
		}
		for _, other := range asked[i+1:] {
			if overlap(prefix, other) {
				c.errf(errPrefixesOverlapTwo, prefix, other)
				return false
			}
		}
	}
	return true
}

func clientCaching(c *Ctx) {
	mode := trackingOf(c.client)
	switch {
	case mode == nil:
		c.err(errCachingOff)
	case c.is(2, "YES") && !mode.optIn:
		c.err(errCachingYes)
	case c.is(2, "NO") && !mode.optOut:
		c.err(errCachingNo)
	case !c.is(2, "YES") && !c.is(2, "NO"):
		c.err(errSyntax)
	default:
		mode.caching = true
		c.ok()
	}
}

// redirection is what CLIENT LIST and others show of where a client's invalidations go.
func redirection(cl *Client) int64 {
	if cl.tracking == nil {
		return -1
	}
	return trackingOf(cl).redirect
}

func clientGetRedir(c *Ctx) { c.reply.Int(redirection(c.client)) }

func clientTrackingInfo(c *Ctx) {
	w, mode := c.reply, trackingOf(c.client)
	w.Map(3)
	w.BulkString("flags")
	if mode == nil {
		w.Set(1)
		w.BulkString("off")
		mode = &trackingMode{}
	} else {
		c.sendTrackingFlags(mode)
	}
	w.BulkString("redirect")
	w.Int(redirection(c.client))
	w.BulkString("prefixes")
	prefixes := mode.prefixes()
	w.Array(len(prefixes))
	for _, prefix := range prefixes {
		w.BulkString(prefix)
	}
}

func (c *Ctx) sendTrackingFlags(mode *trackingMode) {
	mark, n := c.reply.Start(), 0
	add := func(when bool, word string) {
		if when {
			c.reply.BulkString(word)
			n++
		}
	}
	add(true, "on")
	add(mode.bcast, "bcast")
	add(mode.optIn, "optin")
	add(mode.optIn && mode.caching, "caching-yes")
	add(mode.optOut, "optout")
	add(mode.optOut && mode.caching, "caching-no")
	add(mode.noLoop, "noloop")
	add(mode.broken, "broken_redirect")
	c.reply.EndSet(mark, n)
}
