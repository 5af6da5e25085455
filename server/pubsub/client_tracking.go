package pubsub

import (
	"headgate/server/command"
)

// These are sub-commands of CLIENT for client-side caching, with CLIENT TRACKING below.
var (
	ClientCachingCommand = &command.Command{
		Name: "caching", Since: "6.0.0", Complexity: "O(1)",
		Summary: "Track, or do not track, the keys of the next command, against the client's default.",
		Arity:   3, Flags: command.ClientFlags | command.HomeOnly,
		Args: []command.Arg{command.OneOf("mode", command.Tok("YES"), command.Tok("NO"))}, Reply: command.ReplySimple, Handler: clientCaching,
	}
	ClientGetRedirCommand = &command.Command{
		Name: "getredir", Since: "6.0.0", Complexity: "O(1)",
		Summary: "Return the number of the connection that invalidations are sent to instead, 0 if that is this one, -1 without tracking.",
		Arity:   2, Flags: command.ClientFlags, Reply: command.ReplyInteger, Handler: clientGetRedir,
	}
	ClientTrackingInfoCommand = &command.Command{
		Name: "trackinginfo", Since: "6.2.0", Complexity: "O(1)",
		Summary: "Describe how the connection tracks keys.",
		Arity:   2, Flags: command.ClientFlags, Reply: command.ReplyMap, Handler: clientTrackingInfo,
	}
)

// ClientTrackingCommand is CLIENT TRACKING.
func (h *Hub) ClientTrackingCommand() *command.Command {
	return &command.Command{
		Name: "tracking", Since: "6.0.0", Complexity: "O(1), and O(n) in the number of prefixes",
		Summary: "Notify the client of changes to keys that it has read, or in broadcasting mode to keys with a prefix.",
		Arity:   -3, Flags: command.ClientFlags | command.HomeOnly,
		Args: []command.Arg{
			command.OneOf("status", command.Tok("ON"), command.Tok("OFF")), command.Integer("client-id").After("REDIRECT").Opt(),
			command.Str("prefix").After("PREFIX").Multi().EachWithToken().Opt(), command.Tok("BCAST").Opt(), command.Tok("OPTIN").Opt(), command.Tok("OPTOUT").Opt(), command.Tok("NOLOOP").Opt(),
		},
		Reply: command.ReplySimple, Handler: h.clientTracking,
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

func (h *Hub) clientTracking(c *command.Ctx) {
	mode, prefixes, ok := trackingOptions(c)
	if !ok {
		return
	}
	switch {
	case c.Is(2, "OFF"):
		h.Untrack(c.Client)
	case !c.Is(2, "ON"):
		c.Err(command.ErrSyntax)
		return
	default:
		if refusal := refuseTracking(TrackingOf(c.Client), &mode, prefixes); refusal != "" {
			c.Err(refusal)
			return
		}
		if mode.Bcast && !prefixesFit(c, prefixes) {
			return
		}
		h.track(c.Client, mode, prefixes)
	}
	c.OK()
}

// trackingOptions parses the words from args[3] on, or sends the error and returns false.
func trackingOptions(c *command.Ctx) (mode trackingMode, prefixes []string, ok bool) {
	for i := 3; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch {
		case c.Is(i, "REDIRECT") && more:
			i++
			if mode.redirect != 0 {
				c.Err(errTrackingOneTarget)
				return mode, nil, false
			}
			id, ok := c.Integer(i)
			if !ok {
				return mode, nil, false
			}
			if target := c.Core.Clients.ByID[id]; target == nil || target.Conn.ClosingNow() {
				c.Err(errTrackingNoTarget)
				return mode, nil, false
			}
			mode.redirect = id
		case c.Is(i, "BCAST"):
			mode.Bcast = true
		case c.Is(i, "OPTIN"):
			mode.optIn = true
		case c.Is(i, "OPTOUT"):
			mode.optOut = true
		case c.Is(i, "NOLOOP"):
			mode.noLoop = true
		case c.Is(i, "PREFIX") && more:
			i++
			prefixes = append(prefixes, string(c.Args[i]))
		default:
			c.Err(command.ErrSyntax)
			return mode, nil, false
		}
	}
	return mode, prefixes, true
}

// refuseTracking returns the error of a mode that contradicts itself or the one that holds, which may be nil.
func refuseTracking(old, mode *trackingMode, prefixes []string) string {
	switch {
	case len(prefixes) > 0 && !mode.Bcast:
		return errTrackingPrefix
	case old != nil && old.Bcast != mode.Bcast:
		return errTrackingBcast
	case mode.Bcast && (mode.optIn || mode.optOut):
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
func prefixesFit(c *command.Ctx, asked []string) bool {
	var held []string
	if mode := TrackingOf(c.Client); mode != nil {
		held = mode.prefixes()
	}
	if len(held)+len(asked) > maxTrackingPrefixes {
		c.Err(errTrackingPrefixes)
		return false
	}
	for i, prefix := range asked {
		for _, other := range held {
			if overlap(prefix, other) {
				c.Errf(errPrefixesOverlapOld, prefix, other)
				return false
			}
		}
		for _, other := range asked[i+1:] {
			if overlap(prefix, other) {
				c.Errf(errPrefixesOverlapTwo, prefix, other)
				return false
			}
		}
	}
	return true
}

func clientCaching(c *command.Ctx) {
	mode := TrackingOf(c.Client)
	switch {
	case mode == nil:
		c.Err(errCachingOff)
	case c.Is(2, "YES") && !mode.optIn:
		c.Err(errCachingYes)
	case c.Is(2, "NO") && !mode.optOut:
		c.Err(errCachingNo)
	case !c.Is(2, "YES") && !c.Is(2, "NO"):
		c.Err(command.ErrSyntax)
	default:
		mode.caching = true
		c.OK()
	}
}

// Redirection is what CLIENT LIST and others show of where a client's invalidations go.
func Redirection(cl *command.Client) int64 {
	if cl.Tracking == nil {
		return -1
	}
	return TrackingOf(cl).redirect
}

func clientGetRedir(c *command.Ctx) { c.Reply.Int(Redirection(c.Client)) }

func clientTrackingInfo(c *command.Ctx) {
	w, mode := c.Reply, TrackingOf(c.Client)
	w.Map(3)
	w.BulkString("flags")
	if mode == nil {
		w.Set(1)
		w.BulkString("off")
		mode = &trackingMode{}
	} else {
		sendTrackingFlags(c, mode)
	}
	w.BulkString("redirect")
	w.Int(Redirection(c.Client))
	w.BulkString("prefixes")
	prefixes := mode.prefixes()
	w.Array(len(prefixes))
	for _, prefix := range prefixes {
		w.BulkString(prefix)
	}
}

func sendTrackingFlags(c *command.Ctx, mode *trackingMode) {
	mark, n := c.Reply.Start(), 0
	add := func(when bool, word string) {
		if when {
			c.Reply.BulkString(word)
			n++
		}
	}
	add(true, "on")
	add(mode.Bcast, "bcast")
	add(mode.optIn, "optin")
	add(mode.optIn && mode.caching, "caching-yes")
	add(mode.optOut, "optout")
	add(mode.optOut && mode.caching, "caching-no")
	add(mode.noLoop, "noloop")
	add(mode.Broken, "broken_redirect")
	c.Reply.EndSet(mark, n)
}
