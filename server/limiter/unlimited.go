package limiter

// unlimited is what exempts somebody without taking the policy out of the callers' code.
var unlimited = Algorithm{
	Name: "UNLIMITED", PolicyOnly: true, Kind: NoState,
	Guarantee: "everything passes, and nothing is kept",
	Read: func(p *Policy, _ [][]byte) error {
		p.Limit = -1
		return nil
	},
}
