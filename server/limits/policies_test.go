package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// commandConversations are calls of the commands that are not one algorithm's, written as conversations are.
var commandConversations = []struct{ name, calls string }{
	{"leases", `
		RL.ACQUIRE k 2 1s MEMBER a         | [0 2 1 -1 1000 a]
		+100 RL.ACQUIRE k 2 1s MEMBER b    | [0 2 0 -1 1000 b]
		RL.ACQUIRE k 2 1s MEMBER c         | [1 2 0 900 1000 nil]
		RL.ACQUIRE k 2 1s PEEK             | [1 2 0 900 1000 nil]
		RL.ACQUIRE k 2 3s MEMBER a PEEK    | [0 2 0 -1 1000 nil]
		RL.ACQUIRE k 2 3s MEMBER a         | [0 2 0 -1 3000 a]
		PTTL k                             | 3000
		ZRANGE k 0 -1 WITHSCORES           | [b 1795268711100 a 1795268713100]
		+999 RL.ACQUIRE k 2 1s MEMBER c    | [1 2 0 1 2001 nil]
		+1 RL.ACQUIRE k 2 1s MEMBER c      | [0 2 0 -1 2000 c]
		RL.RELEASE k b                     | 0
		RL.RELEASE k a                     | 1
		RL.RELEASE k a                     | 0
		PTTL k                             | 1000
		RL.RENEW k c 5s                    | 1
		RL.RENEW k a 5s                    | 0
		PTTL k                             | 5000
		RL.ACQUIRE k 0 1s                  | [1 0 0 -1 5000 nil]
		RL.RELEASE k c                     | 1
		EXISTS k                           | 0
		RL.RENEW k c 5s                    | 0`},
	{"renewing the last lease, and the only one", `
		RL.ACQUIRE k 2 5s MEMBER a         | [0 2 1 -1 5000 a]
		RL.ACQUIRE k 2 1s MEMBER a         | [0 2 1 -1 1000 a]
		RL.ACQUIRE k 2 9s MEMBER b         | [0 2 0 -1 9000 b]
		RL.ACQUIRE k 2 500ms MEMBER b      | [0 2 0 -1 1000 b]
		+2000 RL.ACQUIRE k 2 500ms MEMBER b PEEK | [0 2 2 -1 0 nil]
		EXISTS k                           | 0`},
	{"a lowered number of leases", `
		RL.ACQUIRE k 9 1s MEMBER a         | [0 9 8 -1 1000 a]
		RL.ACQUIRE k 9 2s MEMBER b         | [0 9 7 -1 2000 b]
		RL.ACQUIRE k 9 3s MEMBER c         | [0 9 6 -1 3000 c]
		RL.ACQUIRE k 1 1s MEMBER d         | [1 1 0 3000 3000 nil]
		RL.ACQUIRE k 1 1s MEMBER a         | [0 1 0 -1 3000 a]
		RL.ACQUIRE k -1 1s MEMBER x        | [0 -1 -1 -1 0 x]
		RL.ACQUIRE k -1 1s MEMBER x PEEK   | [0 -1 -1 -1 0 nil]
		ZSCORE k x                         | nil`},
	{"reset", `
		CL.THROTTLE cl 14 30 60            | [0 15 14 -1 2]
		RL.QUEUE q 15 30 60s               | [0 15 14 -1 2000 0]
		RL.FIXED f 5 60s                   | [0 5 4 -1 60000]
		RL.SLIDING s 5 60s COST 2          | [0 5 3 -1 62000]
		RL.LOG l 5 60s COST 2              | [0 5 3 -1 60000]
		RL.LOG m 5 60s MEMBER id           | [0 5 4 -1 60000]
		RL.ACQUIRE a 5 60s MEMBER id       | [0 5 4 -1 60000 id]
		INCREX i BYINT 2 EX 60             | [2 2]
		INCREX x BYFLOAT 0.5               | [0.5 0.5]
		INCR n                             | 1
		RL.GCRA other 5 1 1h               | [0 5 4 -1 3600000]
		RL.RESET cl q none f s l m a i x n q | 10
		KEYS *                             | [other]
		RL.RESET cl q                      | 0
		RL.RELEASE a id                    | 0
		RL.LOG l 5 60s COST 5              | [0 5 0 -1 60000]
		+60001 RL.RESET l                  | 0`},
	{"reset: what no limiter writes", `
		RL.GCRA k 5 1 60s                  | [0 5 4 -1 60000]
		SET text text                      | OK
		SET infinite inf                   | OK
		HSET fields f v                    | 1
		PEXPIRE fields 60000               | 1
		HSET negative 1795268710000 -1     | 1
		PEXPIRE negative 60000             | 1
		HSET durable 1795268710000 1       | 1
		ZADD board 100 m                   | 1
		ZADD fractions 100 m 100.5 n       | 2
		PEXPIRE fractions 60000            | 1
		ZADD zeros 0 m                     | 1
		PEXPIRE zeros 60000                | 1
		ZADD far 9007199254740994 m        | 1
		PEXPIRE far 60000                  | 1
		RPUSH list 1                       | 1
		SADD set 1                         | 1
		XADD stream 1-1 1 1                | 1-1
		RL.RESET k text                    | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET infinite k                | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k fields                  | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k negative                | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k durable                 | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k board                   | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k fractions               | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k zeros                   | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k far                     | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k list                    | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k set                     | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k stream                  | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET k rl:policies             | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.POLICY SET login LOG 5 60s      | OK
		RL.RESET k rl:policies             | WRONGTYPE Operation against a key holding the wrong kind of value
		DBSIZE                             | 14
		RL.GCRA k 5 1 60s                  | [0 5 3 -1 120000]
		RL.TAKE 1 login rl:user            | [0 -1 [[0 5 4 -1 60000]]]
		RL.RESET rl:user k                 | 2
		DEL list set stream                | 3`},
	{"leases: bad calls", `
		RL.ACQUIRE k 2 1s COST 1           | ERR syntax error, try RL.ACQUIRE key limit ttl [MEMBER id] [PEEK] [WAIT duration] (unknown word 'COST')
		RL.ACQUIRE k 2 1s MEMBER           | ERR syntax error, try RL.ACQUIRE key limit ttl [MEMBER id] [PEEK] [WAIT duration] (MEMBER needs a value)
		RL.ACQUIRE k 2 1s MEMBER a MEMBER b | ERR syntax error, try RL.ACQUIRE key limit ttl [MEMBER id] [PEEK] [WAIT duration] (MEMBER is given twice)
		RL.ACQUIRE k 2 1s PEEK PEEK        | ERR syntax error, try RL.ACQUIRE key limit ttl [MEMBER id] [PEEK] [WAIT duration] (PEEK is given twice)
		SET s 1                            | OK
		RL.ACQUIRE s 2 1s                  | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RELEASE s a                     | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RENEW s a 1s                    | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RENEW s a x                     | ERR invalid duration 'x', use a number with us, ms, s, m, h, d or w (none: ms)`},
	{"GCRA", `
		GCRA k 15 30 60                    | [0 16 15 -1 2]
		CL.THROTTLE k 15 30 60             | [0 16 14 -1 4]
		GCRA k 15 30 60 TOKENS 14          | [0 16 0 -1 32]
		GCRA k 15 30 60                    | [1 16 0 2 32]
		GCRA k 15 30 60 TOKENS 17          | [1 16 0 -1 32]
		GCRA k 15 30 60 TOKENS 0           | [0 16 0 -1 32]
		GCRA f 0 1 0.0015                  | [0 1 0 -1 1]
		PTTL f                             | 2
		GCRA f 0 1 0.0015                  | [1 1 0 1 1]
		+0.5 GCRA f 0 1 0.0015             | [1 1 0 1 1]
		+1 GCRA f 0 1 0.0015               | [0 1 0 -1 1]
		GCRA u 0 1 2.0005                  | [0 1 0 -1 3]
		GCRA v 0 10000000 1                | [0 1 0 -1 1]
		GET v                              | 1795268710001501000`},
	{"GCRA: bad calls", `
		GCRA k -1 1 1                      | ERR value is out of range, must be positive
		GCRA k 1 0 1                       | ERR value is out of range, value must between 1 and 9223372036854775807
		GCRA k 1 1 0                       | ERR period must be > 0 and < 1e12
		GCRA k 1 1 -1                      | ERR period must be > 0 and < 1e12
		GCRA k 1 1 1e12                    | ERR period must be > 0 and < 1e12
		GCRA k 1 1 inf                     | ERR period must be > 0 and < 1e12
		GCRA k 1 1 nan                     | ERR value is not a valid float
		GCRA k 1 1 1 TOKENS                | ERR Missing TOKENS value
		GCRA k 1 1 1 TOKENS -1             | ERR value is out of range, value must between 0 and 9223372036854775807
		GCRA k 1 1 1 COST 1                | ERR syntax error
		GCRA k 1 1 1 TOKENS 1 x            | ERR syntax error
		GCRA k 9223372036854775807 1 1     | ERR value is not an integer or out of range
		GCRA k 5 1 1 TOKENS 9223372036854775807 | ERR value is not an integer or out of range
		GCRA k 1 1 9e11                    | ERR value is not an integer or out of range
		GCRA k 1 1 9e9                     | ERR value is not an integer or out of range
		SET s x                            | OK
		GCRA s 1 1 1                       | ERR value is not an integer or out of range
		HSET h f v                         | 1
		GCRA h 1 1 1                       | WRONGTYPE Operation against a key holding the wrong kind of value
		EXISTS k                           | 0`},
	{"INCREX", `
		INCREX k                           | [1 1]
		INCREX k BYINT 5                   | [6 5]
		INCREX k BYINT 5 UBOUND 10         | [6 0]
		INCREX k BYINT 5 UBOUND 10 SATURATE | [10 4]
		INCREX k LBOUND 0 BYINT -11        | [10 0]
		INCREX k SATURATE LBOUND 0 BYINT -11 EX 10 | [0 -10]
		TTL k                              | 10
		INCREX k EX 20 ENX                 | [1 1]
		TTL k                              | 10
		INCREX k PX 20000                  | [2 1]
		TTL k                              | 20
		INCREX k PERSIST                   | [3 1]
		TTL k                              | -1
		INCREX k ENX PXAT 1795268711000    | [4 1]
		PTTL k                             | 1000
		INCREX k UBOUND 4 PERSIST          | [4 0]
		PTTL k                             | 1000
		INCREX new BYINT 11 UBOUND 10 EX 5 | [0 0]
		EXISTS new                         | 0
		INCREX new BYINT 11 UBOUND 10 EX 5 SATURATE | [10 10]
		TTL new                            | 5
		INCREX k EXAT 1                    | [5 1]
		EXISTS k                           | 0`},
	{"INCREX as a limiter", `
		INCREX rl:u BYINT 1 UBOUND 2 EX 60 ENX | [1 1]
		+1000 INCREX rl:u BYINT 1 UBOUND 2 EX 60 ENX | [2 1]
		INCREX rl:u BYINT 1 UBOUND 2 EX 60 ENX | [2 0]
		TTL rl:u                           | 59`},
	{"INCREX at the ends of 64 bits", `
		SET k 9223372036854775807          | OK
		INCREX k                           | [9223372036854775807 0]
		INCREX k SATURATE                  | [9223372036854775807 0]
		INCREX k BYINT -9223372036854775808 | [-1 -9223372036854775808]
		INCREX k BYINT -9223372036854775808 SATURATE | [-9223372036854775808 -9223372036854775807]
		INCREX k LBOUND 9223372036854775806 SATURATE | [9223372036854775806 9223372036854775807]
		SET k -9223372036854775808         | OK
		INCREX k BYINT 1 LBOUND 13 SATURATE | [13 9223372036854775807]
		SET k 9223372036854775807          | OK
		INCREX k BYINT -1 UBOUND -13 SATURATE | [-13 -9223372036854775808]
		SET k -9223372036854775808         | OK
		INCREX k BYINT 1 LBOUND -1 SATURATE | [-1 9223372036854775807]
		SET k 0                            | OK
		INCREX k BYINT -1 UBOUND -9223372036854775808 SATURATE | [-9223372036854775808 -9223372036854775808]`},
	{"INCREX with fractions", `
		INCREX f BYFLOAT 0.1               | [0.1 0.1]
		INCREX f BYFLOAT 0.25 UBOUND 0.3   | [0.1 0]
		INCREX f BYFLOAT 0.25 UBOUND 0.3 SATURATE EX 5 | [0.3 0.2]
		TTL f                              | 5
		INCREX f BYFLOAT -1 LBOUND -0.5    | [0.3 0]
		INCREX f PERSIST BYFLOAT 1e1       | [10.3 10]
		TTL f                              | -1`},
	{"INCREX: bad calls", `
		INCREX k BYINT 1 BYFLOAT 1         | ERR syntax error
		INCREX k BYINT 1 BYINT 1           | ERR syntax error
		INCREX k BYINT                     | ERR syntax error
		INCREX k BYINT x                   | ERR value is not an integer or out of range
		INCREX k BYINT 1 UBOUND 1.5        | ERR value is not an integer or out of range
		INCREX k UBOUND x                  | ERR value is not an integer or out of range
		INCREX k BYFLOAT x                 | ERR value is not a valid float
		INCREX k BYFLOAT 1 LBOUND x        | ERR value is not a valid float
		INCREX k BYFLOAT inf               | ERR increment would produce NaN or Infinity
		INCREX k BYFLOAT nan               | ERR value is not a valid float
		INCREX k LBOUND 2 UBOUND 1         | ERR LBOUND can't be greater than UBOUND
		INCREX k EX 0                      | ERR invalid expire time in 'increx' command
		INCREX k EX x                      | ERR value is not an integer or out of range
		INCREX k EX 1 PX 1                 | ERR syntax error
		INCREX k EX 1 EX 1                 | ERR syntax error
		INCREX k EX 1 PERSIST              | ERR syntax error
		INCREX k ENX                       | ERR syntax error
		INCREX k PERSIST ENX               | ERR syntax error
		INCREX k x                         | ERR syntax error
		SET t text                         | OK
		INCREX t                           | ERR value is not an integer or out of range
		INCREX t BYFLOAT 1                 | ERR value is not a valid float
		HSET h f v                         | 1
		INCREX h                           | WRONGTYPE Operation against a key holding the wrong kind of value
		EXISTS k                           | 0`},
	{"policies", `
		RL.POLICY SET login log 5 60s      | OK
		RL.POLICY SET api GCRA 10 5 1s     | OK
		RL.POLICY SET bill fixed 100 month tz Europe/Berlin | OK
		RL.POLICY SET slow sliding 9 1h slices 60 | OK
		RL.POLICY SET free unlimited       | OK
		RL.POLICY GET login                | LOG 5 60s
		RL.POLICY GET bill                 | FIXED 100 MONTH TZ Europe/Berlin
		RL.POLICY GET none                 | nil
		RL.POLICY LIST                     | [api GCRA 10 5 1s bill FIXED 100 MONTH TZ Europe/Berlin free UNLIMITED login LOG 5 60s slow SLIDING 9 1h SLICES 60]
		HGET rl:policies slow              | SLIDING 9 1h SLICES 60
		TTL rl:policies                    | -1
		RL.POLICY DEL slow                 | 1
		RL.POLICY DEL slow                 | 0
		RL.POLICY SET login LEASE 5 60s    | ` + fmt.Sprintf(limiter.Standard.UnknownAlgorithm(), "LEASE") + `
		RL.POLICY SET login LOG 5 60s LEASE | ERR LEASE is not possible with LOG, use NOLEASE or leave it out
		RL.POLICY SET login LOG 5          | ERR syntax error, try RL.POLICY SET name LOG limit window [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE]
		RL.POLICY SET login LOG 5 60s COST 1 | ERR syntax error, try RL.POLICY SET name LOG limit window [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE] (unknown word 'COST')
		RL.POLICY SET login LOG 5 60s PEEK | ERR syntax error, try RL.POLICY SET name LOG limit window [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE] (unknown word 'PEEK')
		RL.POLICY SET login gcra 10        | ERR syntax error, try RL.POLICY SET name GCRA capacity count period [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [<LEASE | NOLEASE>]
		RL.POLICY SET login SLIDING 1 1s x | ERR syntax error, try RL.POLICY SET name SLIDING limit window [SLICES slices] [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [<LEASE | NOLEASE>] (unknown word 'x')
		RL.POLICY SET login UNLIMITED 1    | ERR syntax error, try RL.POLICY SET name UNLIMITED (unknown word '1')
		RL.POLICY SET quoted GCRA~10~5~1s  | OK
		RL.POLICY GET quoted               | GCRA 10 5 1s
		RL.POLICY DEL quoted               | 1
		RL.POLICY SET login LOG -2 60s     | ERR limit must be -1 or >= 0, not '-2'
		RL.POLICY SET login GCRA 5 0 60s   | ERR count must be >= 1, not '0'
		RL.POLICY SET login LOG 5 60x      | ERR invalid duration '60x', use a number with us, ms, s, m, h, d or w (none: ms)
		RL.POLICY SET login LOG 5 60us     | ERR duration '60us' is below 1ms
		RL.POLICY SET login FIXED 5 DAY TZ Nowhere | ERR unknown time zone 'Nowhere'
		RL.POLICY SET a/b LOG 5 60s        | ERR policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -
		RL.POLICY GET login                | LOG 5 60s`},
	{"durations", `
		RL.GCRA g 10 10                    | ERR wrong number of arguments for 'rl.gcra' command, try RL.GCRA key capacity count period [COST n] [PEEK] [WAIT duration]
		RL.RELEASE k                       | ERR wrong number of arguments for 'rl.release' command, try RL.RELEASE key id
		RL.TAKE 1 p                        | ERR wrong number of arguments for 'rl.take' command, try RL.TAKE numpairs policy key [policy key …] [COST n | COSTS each [each …]] [PEEK] [WAIT duration]
		RL.POLICY GET                      | ERR wrong number of arguments for 'rl.policy|get' command, try RL.POLICY GET name
		INCRBY k                           | ERR wrong number of arguments for 'incrby' command
		RL.GCRA g 10 10 2w                 | [0 10 9 -1 120960000]
		RL.GCRA u 2000 10 100us COST 1500  | [0 2000 500 -1 15]
		RL.BUCKET u 2000 10 100us          | [0 2000 499 -1 16]
		RL.QUEUE u 2000 10 100us           | [0 2000 498 -1 16 16]
		RL.GCRA u 2000 10 us               | ERR invalid duration 'us', use a number with us, ms, s, m, h, d or w (none: ms)
		RL.FIXED f 5 1w                    | [0 5 4 -1 604800000]
		RL.FIXED m 5 minute                | [0 5 4 -1 50000]
		RL.FIXED b 5 MINUTE TZ Asia/Kathmandu | [0 5 4 -1 50000]
		RL.FIXED f 5 500us                 | ERR duration '500us' is below 1ms
		RL.SLIDING s 5 500us               | ERR duration '500us' is below 1ms
		RL.LOG l 5 500us                   | ERR duration '500us' is below 1ms
		RL.ACQUIRE a 5 500us               | ERR duration '500us' is below 1ms
		RL.RENEW a id 500us                | ERR duration '500us' is below 1ms
		RL.FIXED us 5 1000us               | [0 5 4 -1 1]
		RL.LOG l 5 1500us                  | ERR duration '1500us' is not a whole number of milliseconds
		RL.LOG l 5 999us                   | ERR duration '999us' is below 1ms
		RL.POLICY SET fast BUCKET 9 1 100us | OK
		RL.POLICY SET api gcra 10 5 60     | OK
		RL.POLICY SET log log 5 1000       | OK
		RL.POLICY SET min fixed 5 minute   | OK
		HSET rl:policies old GCRA~10~5~60  | 1
		RL.POLICY GET api                  | GCRA 10 5 60ms
		RL.POLICY LIST                     | [api GCRA 10 5 60ms fast BUCKET 9 1 100us log LOG 5 1000ms min FIXED 5 MINUTE old GCRA 10 5 60ms]
		RL.TAKE 1 old k                    | [0 -1 [[0 10 9 -1 12]]]`},
	{"no more slices than milliseconds", `
		RL.SLIDING s 2 3ms COST 2          | [0 2 0 -1 4]
		RL.SLIDING s 2 3ms                 | [1 2 0 4 4]
		+4 RL.SLIDING s 2 3ms              | [0 2 1 -1 4]
		RL.SLIDING t 2 3ms SLICES 1000     | [0 2 1 -1 4]
		RL.SLIDING u 2 3ms SLICES 2        | [0 2 1 -1 6]`},
	{"several limits at once", `
		RL.POLICY SET user GCRA 3 1 1s     | OK
		RL.POLICY SET ip FIXED 2 1s        | OK
		RL.TAKE 2 user u ip i              | [0 -1 [[0 3 2 -1 1000] [0 2 1 -1 1000]]]
		RL.TAKE 2 user u ip i COSTS 2 1    | [0 -1 [[0 3 0 -1 3000] [0 2 0 -1 1000]]]
		RL.TAKE 2 user u ip i              | [1 0 [[1 3 0 1000 3000] [1 2 0 1000 1000]]]
		RL.TAKE 2 user other ip i          | [1 1 [[0 3 3 -1 0] [1 2 0 1000 1000]]]
		EXISTS other                       | 0
		RL.TAKE 2 user u ip i PEEK         | [0 -1 [[0 3 0 -1 3000] [0 2 0 -1 1000]]]
		RL.TAKE 1 user u PEEK COST 4       | [1 0 [[1 3 0 -1 3000]]]
		RL.TAKE 1 user u COST -1           | [0 -1 [[0 3 1 -1 2000]]]
		SELECT 3                           | OK
		RL.TAKE 1 user u                   | [0 -1 [[0 3 2 -1 1000]]]
		RL.POLICY SET user GCRA 3 1 2s     | OK
		RL.TAKE 1 user u                   | [0 -1 [[0 3 1 -1 3000]]]
		RL.POLICY SET user LOG 1 1s        | OK
		RL.TAKE 1 user v                   | [0 -1 [[0 1 0 -1 1000]]]
		SELECT 0                           | OK
		HSET rl:policies user nonsense     | 0
		RL.TAKE 1 user v                   | ERR no such policy 'user'
		HDEL rl:policies user              | 1
		RL.TAKE 1 user v                   | ERR no such policy 'user'
		HSET rl:policies user FIXED~9~1s | 1
		RL.TAKE 1 user w                   | [0 -1 [[0 9 8 -1 1000]]]
		RENAME rl:policies x               | OK
		RL.TAKE 1 user w                   | ERR no such policy 'user'
		RENAME x rl:policies               | OK
		RL.TAKE 1 user w                   | [0 -1 [[0 9 7 -1 1000]]]
		SWAPDB 0 5                         | OK
		RL.TAKE 1 user w                   | ERR no such policy 'user'
		SWAPDB 0 5                         | OK
		RL.TAKE 1 user w                   | [0 -1 [[0 9 6 -1 1000]]]
		FLUSHALL                           | OK
		RL.TAKE 1 user w                   | ERR no such policy 'user'
		SET rl:policies x                  | OK
		RL.TAKE 1 user w                   | WRONGTYPE Operation against a key holding the wrong kind of value
		CONFIG SET unknown-policy allow    | OK
		RL.POLICY GET user                 | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.POLICY LIST                     | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.POLICY SET user UNLIMITED       | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.POLICY DEL user                 | WRONGTYPE Operation against a key holding the wrong kind of value
		DEL rl:policies                    | 1
		RL.TAKE 1 user w                   | [0 -1 [[0 -1 -1 -1 0]]]`},
	{"a limited take mends a counter without its EXPIRE", `
		RL.POLICY SET ip FIXED 2 1s        | OK
		SET i 2                            | OK
		RL.TAKE 1 ip i                     | [1 0 [[1 2 0 1000 1000]]]
		PTTL i                             | 1000`},
	{"leases among several limits", `
		RL.POLICY SET par acquire 2 30     | OK
		RL.POLICY GET par                  | ACQUIRE 2 30ms
		RL.POLICY SET par ACQUIRE 2 30s MEMBER x | ERR syntax error, try RL.POLICY SET name ACQUIRE limit ttl [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE] (unknown word 'MEMBER')
		RL.POLICY SET par ACQUIRE 2 30s    | OK
		RL.POLICY SET tok BUCKET 10 1 1s   | OK
		RL.POLICY SET free ACQUIRE -1 1s   | OK
		RL.TAKE 2 par p tok t PEEK         | [0 -1 [[0 2 2 -1 0] [0 10 10 -1 0]] [nil nil]]
		RL.TAKE 2 par p tok t COSTS 1 11   | [1 1 [[0 2 2 -1 0] [1 10 10 -1 0]] [nil nil]]
		EXISTS p t                         | 0
		RL.TAKE 2 par p tok t COSTS 0 3    | [0 -1 [[0 2 2 -1 0] [0 10 7 -1 3000]] [nil nil]]
		EXISTS p                           | 0
		RL.ACQUIRE p 2 30s MEMBER one      | [0 2 1 -1 30000 one]
		RL.ACQUIRE p 2 30s MEMBER two      | [0 2 0 -1 30000 two]
		RL.ACQUIRE p 2 30s PEEK            | [1 2 0 30000 30000 nil]
		RL.TAKE 2 tok t par p PEEK         | [1 1 [[0 10 7 -1 3000] [1 2 0 30000 30000]] [nil nil]]
		RL.TAKE 2 tok t par p COST 0 PEEK  | [0 -1 [[0 10 7 -1 3000] [0 2 0 -1 30000]] [nil nil]]
		+1000 RL.TAKE 2 tok t par p        | [1 1 [[0 10 8 -1 2000] [1 2 0 29000 29000]] [nil nil]]
		RL.TAKE 2 tok t par p COSTS 1 0    | [0 -1 [[0 10 7 -1 3000] [0 2 0 -1 29000]] [nil nil]]
		RL.TAKE 1 par p COST 2             | ERR cost of a lease must be 0 or 1, use COSTS to give each pair its own
		RL.TAKE 1 par p COST -1            | ERR cost of a lease must be 0 or 1, use COSTS to give each pair its own
		RL.TAKE 1 tok t                    | [0 -1 [[0 10 6 -1 4000]]]
		ZCARD p                            | 2
		SET wrong x                        | OK
		RL.TAKE 2 tok t par wrong          | WRONGTYPE Operation against a key holding the wrong kind of value`},
	{"take: bad calls", `
		RL.POLICY SET user GCRA 3 1 1s     | OK
		RL.TAKE 0 user k                   | ERR numpairs must be from 1 to 128, not '0'
		RL.TAKE x user k                   | ERR numpairs must be from 1 to 128, not 'x'
		RL.TAKE 129 user k                 | ERR numpairs must be from 1 to 128, not '129'
		RL.TAKE 2 user k                   | ERR numpairs is greater than the number of pairs
		RL.TAKE 1 user k x                 | ERR syntax error, try RL.TAKE numpairs policy key [policy key …] [COST n | COSTS each [each …]] [PEEK] [WAIT duration] (unknown word 'x' after 1 pair)
		RL.TAKE 1 user k COST              | ERR syntax error, try RL.TAKE numpairs policy key [policy key …] [COST n | COSTS each [each …]] [PEEK] [WAIT duration] (COST needs a value)
		RL.TAKE 1 user k COST x            | ERR COST must be an integer of 64 bits, not 'x'
		RL.TAKE 2 user k user l COSTS 1    | ERR COSTS must give one cost for each pair
		RL.TAKE 2 user k user l COSTS 1 2 3 | ERR COSTS must give one cost for each pair
		RL.TAKE 2 user k user l COSTS 1 2 3 PEEK | ERR COSTS must give one cost for each pair
		RL.TAKE 2 user k user l COSTS 1 PEEK | ERR COSTS must give one cost for each pair
		RL.TAKE 2 user k user l COSTS 1 x  | ERR COSTS must be an integer of 64 bits, not 'x'
		RL.TAKE 1 user k COST 1 COSTS 1    | ERR syntax error, try RL.TAKE numpairs policy key [policy key …] [COST n | COSTS each [each …]] [PEEK] [WAIT duration] (COSTS or COST is given twice)
		RL.TAKE 1 user k PEEK PEEK         | ERR syntax error, try RL.TAKE numpairs policy key [policy key …] [COST n | COSTS each [each …]] [PEEK] [WAIT duration] (PEEK is given twice)
		RL.TAKE 2 user k user k            | ERR duplicate key 'k'
		RL.TAKE 1 none k                   | ERR no such policy 'none'
		SET s x                            | OK
		RL.TAKE 2 user k user s            | ERR the key holds a value that is no limiter's state
		EXISTS k                           | 0
		COMMAND GETKEYS RL.TAKE 2 user k user l COST 1 | [k l]`},
}

func TestCommandConversations(t *testing.T) {
	for _, tc := range commandConversations {
		t.Run(tc.name, func(t *testing.T) { servertest.Converse(t, servertest.NewClockClient(t), tc.calls) })
	}
}

// TestFixedPolicies: what the configuration says of policies wins, and can only be changed there.
// TestTextsThatAreNoPolicies: a text that is longer than a policy can be is not split into words, of which it may have millions.
func TestTextsThatAreNoPolicies(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	require.Equal(t, "+OK\r\n", w.Ask("RL.POLICY", "SET", "p", "FIXED", "5", "1s"))
	text := strings.Repeat("a ", 8_000)
	for _, call := range [][]string{
		{"RL.POLICY", "SET", "q", text}, {"HSET", "rl:policies", "r", text}, {"RL.TAKE", "1", "r", "k"}, {"RL.POLICY", "GET", "r"}, {"RL.POLICY", "LIST"},
		{"SET", "rl:override:{k}:p", text}, {"RL.TAKE", "1", "p", "k"}, {"RL.POLICY", "OVERRIDE", "GET", "p", "k"},
	} {
		line := servertest.EncodeCommand(call...)
		require.Less(t, testing.AllocsPerRun(2, func() { w.Run(line) }), 1000.0, "%q", call[0])
	}
	require.True(t, strings.HasPrefix(w.Ask("RL.POLICY", "SET", "q", text), "-ERR unknown algorithm '"+text[:128]+"', use "))
	require.Equal(t, "-ERR no such policy 'r'\r\n", w.Ask("RL.TAKE", "1", "r", "k"))
	require.True(t, strings.HasPrefix(w.Ask("RL.TAKE", "1", "p", "k2"), "*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:5\r\n"))
	require.True(t, strings.HasPrefix(w.Ask("RL.TAKE", "1", "p", "k", "PEEK"), "*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:5\r\n"), "the override counts as absent")
}

func TestFixedPolicies(t *testing.T) {
	w := servertest.NewClockClient(t)
	servertest.Converse(t, w, `
		RL.POLICY SET login LOG 9 1s       | OK
		RL.TAKE 1 login k                  | [0 -1 [[0 9 8 -1 1000]]]
		CONFIG SET policy login~log~5~60s,~api~gcra~2~1~1s | OK
		CONFIG GET policy                  | [policy login LOG 5 60s, api GCRA 2 1 1s]
		RL.TAKE 1 login k                  | [0 -1 [[0 5 3 -1 60000]]]
		RL.POLICY SET login LOG 7 1s       | ERR policy 'login' is fixed by the configuration file
		RL.POLICY DEL login                | ERR policy 'login' is fixed by the configuration file
		RL.POLICY GET login                | LOG 5 60s
		RL.POLICY LIST                     | [api GCRA 2 1 1s login LOG 5 60s]
		FLUSHALL                           | OK
		RL.TAKE 2 login k api a            | [0 -1 [[0 5 4 -1 60000] [0 2 1 -1 1000]]]
		CONFIG SET policy ~                | ERR CONFIG SET failed (possibly related to argument 'policy') - argument must be a name, an algorithm and what follows it
		RL.POLICY GET api                  | GCRA 2 1 1s`)
	require.Equal(t, "OK", w.Ask("CONFIG", "SET", "policy", ""))
	require.Equal(t, "[]", w.Call("RL.POLICY LIST"))
	require.Equal(t, "ERR no such policy 'login'", w.Call("RL.TAKE 1 login k"))
}

// TestAcquireChoosesID: without MEMBER the lease gets 32 hex digits, others each time.
func TestAcquireChoosesID(t *testing.T) {
	w := servertest.NewClockClient(t)
	seen := map[string]bool{}
	for range 100 {
		fields := strings.Fields(strings.Trim(w.Call("RL.ACQUIRE k 100 1s"), "[]"))
		require.Len(t, fields, 6)
		require.Regexp(t, "^[0-9a-f]{32}$", fields[5])
		require.False(t, seen[fields[5]])
		seen[fields[5]] = true
	}
	require.Equal(t, "[1 100 0 1000 1000 nil]", w.Call("RL.ACQUIRE k 100 1s"))
	for id := range seen {
		require.Equal(t, "1", w.Call("RL.RELEASE k "+id))
	}
}

// TestTakeChoosesLeaseIDs: a take has a lease of each ACQUIRE among its policies, under an id of its own, which can be given back.
func TestTakeChoosesLeaseIDs(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.POLICY SET a ACQUIRE 5 30s")
	w.Call("RL.POLICY SET free ACQUIRE -1 30s")
	w.Call("RL.POLICY SET g GCRA 9 1 1s")
	reply := w.Call("RL.TAKE 4 a k1 g k2 a k3 free k4")
	head, ids, found := strings.Cut(reply, "]] [")
	require.True(t, found, reply)
	require.Equal(t, "[0 -1 [[0 5 4 -1 30000] [0 9 8 -1 1000] [0 5 4 -1 30000] [0 -1 -1 -1 0", head)
	fields := strings.Fields(strings.TrimRight(ids, "]"))
	require.Len(t, fields, 4)
	require.Equal(t, "nil", fields[1])
	for _, i := range []int{0, 2, 3} {
		require.Regexp(t, "^[0-9a-f]{32}$", fields[i])
	}
	require.NotEqual(t, fields[0], fields[2])
	require.Equal(t, "0", w.Call("EXISTS k4"))
	require.Equal(t, "0", w.Call("RL.RELEASE k1 "+fields[2]))
	require.Equal(t, "1", w.Call("RL.RELEASE k1 "+fields[0]))
	require.Equal(t, "1", w.Call("RL.RENEW k3 "+fields[2]+" 60s"))
	require.Equal(t, "[0 -1 [[0 5 5 -1 0] [0 5 4 -1 60000]] [nil nil]]", w.Call("RL.TAKE 2 a k1 a k3 PEEK"))
}

// TestNoLimiterHasThePoliciesKey: policies that are set later would end with a limiter's state, and whoever may call limiters is often nobody
// who may set policies.
func TestNoLimiterHasThePoliciesKey(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	const wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	for _, call := range []string{
		"RL.SLIDING rl:policies 5 2s", "RL.FIXED rl:policies 5 2s", "RL.LOG rl:policies 5 2s", "RL.ACQUIRE rl:policies 5 2s", "RL.GCRA rl:policies 5 1 2s",
		"CL.THROTTLE rl:policies 5 1 2", "GCRA rl:policies 5 1 2", "RL.SLIDING rl:policies 5 2s PEEK",
	} {
		require.Equal(t, wrong, w.Ask(strings.Fields(call)...), call)
	}
	require.Equal(t, "+OK\r\n", w.Ask("RL.POLICY", "SET", "p", "FIXED", "5", "2s"))
	require.Equal(t, wrong, w.Ask("RL.TAKE", "1", "p", "rl:policies"))
	require.Equal(t, ":-1\r\n", w.Ask("TTL", "rl:policies"))
}
