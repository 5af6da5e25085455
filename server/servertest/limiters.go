package servertest

// LimiterCase is a limiter that lets one call through. KEY stands for its key.
type LimiterCase struct {
	Name    string
	Call    string // a call that counts
	Limited string // what the second such call answers, as it is sent
	Peek    string // a call that only looks; empty if there is none
}

// LimiterCases has one case of each limiter that there is, INCREX included. RL.TAKE's wants a policy p that allows one call in 1000 s.
var LimiterCases = []LimiterCase{
	{"CL.THROTTLE", "CL.THROTTLE KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "CL.THROTTLE KEY 0 1 1000 0"},
	{"RL.THROTTLE", "RL.THROTTLE KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "RL.THROTTLE KEY 0 1 1000 0"},
	{"GCRA", "GCRA KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "GCRA KEY 0 1 1000 TOKENS 0"},
	{"RL.GCRA", "RL.GCRA KEY 1 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.GCRA KEY 1 1 1000s PEEK"},
	{"RL.BUCKET", "RL.BUCKET KEY 1 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.BUCKET KEY 1 1 1000s PEEK"},
	{"RL.QUEUE", "RL.QUEUE KEY 1 1 1000s", "*6\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n:-1\r\n", "RL.QUEUE KEY 1 1 1000s PEEK"},
	{"RL.FIXED", "RL.FIXED KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.FIXED KEY 1 1000s PEEK"},
	{"RL.SLIDING", "RL.SLIDING KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n", "RL.SLIDING KEY 1 1000s PEEK"},
	{"RL.LOG", "RL.LOG KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.LOG KEY 1 1000s PEEK"},
	{"RL.LOG MEMBER", "RL.LOG KEY 1 1000s MEMBER a", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1000000\r\n", "RL.LOG KEY 1 1000s MEMBER a PEEK"},
	{"RL.ACQUIRE", "RL.ACQUIRE KEY 1 1000s", "*6\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n$-1\r\n", "RL.ACQUIRE KEY 1 1000s PEEK"},
	{"RL.TAKE", "RL.TAKE 1 p KEY", "*3\r\n:1\r\n:0\r\n*1\r\n*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.TAKE 1 p KEY PEEK"},
	{"INCREX", "INCREX KEY UBOUND 1", "*2\r\n:1\r\n:0\r\n", ""},
	{"INCREX BYFLOAT", "INCREX KEY BYFLOAT 1 UBOUND 1", "*2\r\n$1\r\n1\r\n$1\r\n0\r\n", ""},
}
