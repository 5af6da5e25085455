# Targets for people and for .ci/run. `make` alone lists them.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO      ?= go
BIN     := bin/headgate

# The server, and the suites that drive it: two modules, so that who builds the server downloads nothing that only the suites import.
MODULES := . tests

T       ?= 10m
BENCH   ?= .
TIMEOUT ?= 15m
HISTORIES ?= 1000000

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
RATELIMIT   := github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36
TRAEFIK     := github.com/traefik/traefik/v3@v3.6.12
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

# The tests of tests/clients that need nothing which a gateway does not serve: WATCH, blocking commands, subscriptions.
THROUGH_GATEWAY := Window|Counter|Funnel|Bucket|Throttle|Libraries|NativeLimits|AcquireIsExact

# Those that trim a window of a million entries again and again take minutes, and are left out.
BENCHMARKS = $(GO) test -run '^$$' -bench '$(BENCH)' -skip 'SlidingLog/.*/1000000' -benchmem -benchtime 50ms -count 6 -timeout 60m ./server ./server/journal ./server/limits ./server/resp ./server/script ./store ./throttle ./persistence/rdb

.PHONY: $(shell sed -nE 's/^([a-z-]+):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/headgate
	@mkdir -p bin
	$(GO) build -o $(BIN) ./cmd/headgate

deps: ## install what the tests need: redis-server and redis-tools, which they compare with, and openssl
	@./scripts/deps.sh

# Gateways that are installed in seconds, which make test has the tests of; without them these are skipped.
QUICK_GATEWAYS := nginx:nginx-light /usr/lib/nginx/modules/ngx_http_lua_module.so:libnginx-mod-http-lua /usr/share/lua/5.1/nginx/redis.lua:lua-nginx-redis caddy:caddy haproxy:haproxy

test: deps build ## run every test, in ten to fifteen minutes on two cores; make lint has vet
	-@./scripts/deps.sh $(QUICK_GATEWAYS)
	@failed=; for m in $(MODULES); do $(GO) test -C $$m -vet=off -timeout $(TIMEOUT) ./... || failed=yes; done; \
	if [ -n "$$failed" ]; then exit 1; fi; echo "ok: all tests of headgate passed"

race: deps build ## run the packages' own tests under the race detector, but for those that count allocations, of which it makes some
	$(GO) test -race -timeout 20m -skip 'NotAllocate|AllocatesNothing|AllocateNothing' ./...

race-server: deps ## run the suites that measure nothing against a server with the race detector in it, which ends at the first race
	@mkdir -p bin
	$(GO) build -race -o $(BIN)-race ./cmd/headgate
	GORACE=halt_on_error=1 HEADGATE_BIN="$(CURDIR)/$(BIN)-race" $(GO) test -C tests -count=1 -timeout 20m $(addprefix ./,compat crash exchange fleet fuzzer linear metrics tls)

vet: ## go vet
	@for m in $(MODULES); do $(GO) vet -C $$m ./...; done

fmt: ## what gofmt would change, among the files that git knows
	@changed=$$(git ls-files -z '*.go' | xargs -0 -r gofmt -l); \
	if [ -n "$$changed" ]; then echo "gofmt would change:"; echo "$$changed"; exit 1; fi

lint: fmt vet ## gofmt, go vet and staticcheck
	@for m in $(MODULES); do $(GO) run -C $$m $(STATICCHECK) ./...; done

# Systems other than this one: a file for one of them only must not break the others.
CROSS := linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64

.PHONY: cross
cross: ## compile the server for other systems
	@for target in $(CROSS); do echo "$$target"; GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 $(GO) vet ./cmd/... || exit 1; done

tidy: ## what go mod tidy would change, in each go.mod that git knows
	@for mod in $$(git ls-files '*go.mod'); do $(GO) mod tidy -C "$$(dirname "$$mod")" -diff; done

fuzz: ## run each fuzz target for T, by default 10m
	./scripts/fuzz.sh $(T)

fuzz-commands: ## send N random commands, by default 10,000,000, made from the table of commands
	$(GO) test -C tests -count=1 -v -timeout 6h ./fuzzer -fuzzer.invariants -fuzzer.n $(or $(N),10000000) | grep -vE '^ *=== '

crash: build ## kill -9 the server N times under 16 writers, by default 500, and under 200 callers that reserve
	$(GO) test -C tests -count=1 -v -timeout 60m ./crash -crash.kills $(or $(N),500) -crash.reserve $(or $(N),200) | grep -vE '^ *=== '

power: ## cut the power 20,000 times, cut a log at every byte, flip 100,000 bits, lose each sector, set the clock wrong
	$(GO) test -count=1 -v -timeout 60m -run 'TestPowerCuts|TestLog|TestFixedLog|TestEach|TestKill|TestClock' ./server/journal -aof.cuts 20000 -aof.step 1 -aof.flips 100000 -aof.clocks 400 | grep -E '^ *(--- FAIL|--- PASS: Test[A-Za-z]+ |ok|FAIL|.*Messages)'
	$(GO) test -count=1 -v -timeout 60m ./persistence/aof -scan.step 1 | grep -E '^ *(--- |ok|FAIL|.*Messages)'

disks: build ## run N servers (200) on each kind of bad disk: full, over quota, read-only, broken; no refused call may stay, no acknowledged one go
	$(GO) test -count=1 -v -timeout 60m -run 'TestNoRefusedCallStays' ./server/journal -aof.disks $(or $(N),200) | grep -vE '^ *=== '
	$(GO) test -C tests -count=1 -v -timeout 60m -run TestFullDisk ./crash -crash.disks $(or $(N),200) | grep -vE '^ *=== |appendfsync'

.PHONY: stall exchange
stall: build floor ## what clients notice of a rewrite and of a snapshot of N keys, by default 10,000,000, at a steady load and at half of the most, and what memory these take
	$(GO) test -C tests -count=1 -v -timeout 60m ./stall -stall.keys $(or $(N),10000000) -stall.quiet 10s -stall.rounds 3 -stall.floor "$(CURDIR)/bin/floor" | grep -vE '^ *=== '

.PHONY: full-sync kept
full-sync: build ## what a full sync of N keys (10,000,000) takes: keys loaded a second; p99.9 at half of the most with and without it; memory
	$(GO) test -C tests -count=1 -v -timeout 60m ./stall -run TestFullSync -stall.keys $(or $(N),10000000) -stall.quiet $(or $(TIME),15s) -stall.rounds 3 | grep -vE '^ *=== '

kept: deps build ## what a replica and an append-only file cost a call's processor time, beside redis-server's, for TIME (2s) in each of 5 rounds
	$(GO) test -C tests -count=1 -v -timeout 60m ./bench -run TestCostsOfKeeping -kept $(or $(TIME),2s) | grep -vE '^ *=== '

compat: deps build ## compare with redis-server, byte for byte
	$(GO) test -C tests -count=1 -v -timeout $(TIMEOUT) ./compat -whole -acl.n 3000 -random.n 10000 | grep -vE '^ *(=== |--- PASS)'

compat-random: deps build ## compare N random commands of each family with redis-server, and through a gateway, by default a million, and of clients that wait N/100
	$(GO) test -C tests -count=1 -v -timeout 60m -run 'TestRandom(Commands|Blocking|ThroughGateway)' ./compat -random.n $(or $(N),1000000) -random.blocking $$(( $(or $(N),1000000) / 100 )) | grep -vE '^ *(=== |--- PASS)'

compat-self: deps ## compare redis-server with itself: are the scripts deterministic?
	HEADGATE_BIN=redis-server $(GO) test -C tests -count=1 -timeout $(TIMEOUT) -run 'TestScripts|TestNumbers|TestWrongArity' ./compat

random: deps build ## send 5,000,000 random commands to headgate and to redis-server, and compare
	$(GO) test -C tests -count=1 -v -timeout 60m ./random -random.n 5000000 | grep -vE '^ *=== '

replicas: deps build ## follow a redis-server while N random commands come (5,000,000) and links are cut, and cut a link at every byte; make test does little of both
	$(GO) test -count=1 -v -timeout 30m ./server/replication -replication.step 1 | grep -vE '^ *=== '
	$(GO) test -C tests -count=1 -v -timeout 15m ./replicas | grep -vE '^ *(=== )'
	$(GO) test -C tests -count=1 -v -timeout 60m ./random -run TestReplica -random.replicated $(or $(N),5000000) | grep -vE '^ *=== '

failovers: deps build ## kill the primary that sentinels watch KILLS times (200) under writers, and its replica; make test does it twice
	$(GO) test -C tests -count=1 -v -timeout 120m ./replicas -run 'Killed|SentinelFailover' -replicas.kills $(or $(KILLS),200) | grep -vE '^ *(=== |redis:)'

exchange: deps build ## exchange data directories with redis-server in every way; make test draws one of each kind
	$(GO) test -C tests -count=1 -v -timeout 15m ./exchange -exchange.all | grep -vE '^ *=== '

hostile: deps build ## send what nobody should send, and flood; prints what was measured. FLOOD=regexp chooses floods, FLOOD_TIME how long each goes on
	$(GO) test -C tests -count=1 -v -timeout 60m ./hostile -flood.whole -flood.only '$(FLOOD)' -flood.time $(or $(FLOOD_TIME),5s) | grep -vE '^ *(=== |--- PASS)'

clients: deps build ## run the limiters and clients that people use, those of other languages too
	@./scripts/clients.sh
	$(GO) test -C tests -count=1 -v -timeout 15m ./clients -foreign | grep -vE '^ *=== '

.PHONY: traefik
traefik: deps build bin/traefik ## build Traefik, for which Go downloads 2 GB, and run it as docs/gateways.md has it
	$(GO) test -C tests -count=1 -v -timeout 15m ./gateways -run Traefik -gateways.all | grep -vE '^ *=== '

# It is built where its module lies, by the replacements of its own go.mod: `go install` refuses a module that has some. Those of 3.7 lead to a
# directory that its module lacks.
bin/traefik: Makefile
	@mkdir -p bin
	$(GO) mod download $(TRAEFIK)
	$(GO) build -C "$$($(GO) env GOMODCACHE)/$(TRAEFIK)" -o "$(CURDIR)/bin/traefik" ./cmd/traefik

gateways: deps build ## run the gateways that Debian has, and Traefik, as docs/gateways.md has them, compare N random requests (100,000) with envoyproxy/ratelimit, and hold 10,000 silent connections
	@./scripts/deps.sh $(QUICK_GATEWAYS) varnishd:varnish /usr/share/doc/varnish-redis:varnish-redis rspamd:rspamd
	$(GO) test -count=1 -run Silent ./server/rls -rls.silent 10000
	$(GO) test -count=1 -run Silent ./server/httpcheck -httpcheck.silent 10000
	@GOBIN="$(CURDIR)/bin" $(GO) install $(RATELIMIT)
	@$(MAKE) bin/traefik || echo "Traefik could not be built, and is left out" >&2
	$(GO) test -C tests -count=1 -v -timeout 60m ./gateways -gateways.ratelimit "$(CURDIR)/bin/service_cmd" -gateways.requests $(or $(N),100000) -gateways.all -gateways.waiting 1000 | grep -vE '^ *=== '

lua: deps build ## compare scripts with redis-server, run 200,000 limiter calls, throw the bombs. LITELLM as for limits
	$(GO) test -C tests -count=1 -v -timeout 30m ./lua -lua.n 200000 -lua.limit 1s -lua.litellm '$(abspath $(LITELLM))' | grep -vE '^ *(=== |--- PASS)'

lua-self: deps ## the same with redis-server on both sides
	HEADGATE_BIN=redis-server $(GO) test -C tests -count=1 ./lua

limits: deps build ## a million random histories of each algorithm and of the exceptions of policies (HISTORIES), 64 connections on one key for 30 s each. LITELLM: the path of LiteLLM's parallel_request_limiter_v3.py, to compare with its scripts
	$(GO) test -count=1 -v -timeout 6h ./throttle -run 'Histories|Never|SlidingError' -histories $(HISTORIES)
	$(GO) test -count=1 -v -timeout 6h ./server/limits -run 'AgainstLists|TakeAll|WithoutRoom|ReserveHistories|CheckAndIncrement|LiteLLM' -limiter.histories $(HISTORIES) -limiter.litellm '$(abspath $(LITELLM))'
	$(GO) test -count=1 -v -timeout 6h ./server/limits -run 'TestExceptions(AgainstModel|SurviveKills|AreMoved)|TestMemoryOfExceptions|TestRenewAgainstRemoval' -exceptions.histories $(HISTORIES) -exceptions.keys 1000000 -renew.histories 5000
	$(GO) test -C tests -count=1 -v -timeout 30m ./clients -run 'TestNative|TestAcquireIs|TestOneKey' -limits.time 30s

leases: ## a million random histories of leases, and of an adversary's (HISTORIES): never more than the bound; how much of a rate is admitted, and where
	$(GO) test -count=1 -v -timeout 2h ./throttle -run 'QuotaLease|ByGivingBack' -histories $(HISTORIES) | grep -vE '^ *=== '

# The boundaries and the wide numbers are judged in the server's own engine, under a clock that stands; a tenth as many calls by redis-server.
scripted: deps ## compare the scripts of gateways with package throttle over N calls of each family (1,000,000), and with math/big over ten times as many pairs
	$(GO) test -count=1 -v -timeout 6h ./server/limiter/scripted -run 'AtBoundaries|TestFixed|TestSliding|TestLog$$|TestLeases|DrawnLeases|TestTake$$|TestIncrex$$' \
		-scripted.calls $(or $(N),1000000) -scripted.pairs $$(( $(or $(N),1000000) * 10 )) | grep -vE '^ *=== '
	$(GO) test -count=1 -v -timeout 6h ./server/limiter/scripted -run 'OnRedis|TestWideNumbers$$|ThereAndBack|Contended' -scripted.calls $$(( $(or $(N),1000000) / 10 )) | grep -vE '^ *=== '

waits: deps build ## a million random histories of calls that wait (HISTORIES), and of their queues alone; 10,000 clients that wait at once, and workers that share leases
	$(GO) test -count=1 -v -timeout 2h ./server/waitqueue -run TestQueueAgainstModel -waitqueue.histories $(HISTORIES) | grep -vE '^ *=== '
	$(GO) test -count=1 -v -timeout 2h ./server/limits -run 'TestWaitHistories|TestWhoIsExhausted|TestWorkBoundByLeases|TestTenThousandWaiters' -wait.histories $(HISTORIES) | grep -vE '^ *=== '
	$(GO) test -C tests -count=1 -v -timeout 30m ./clients -run 'TestCrowdsThatWait|TestWorkersShareLeases' -waits.clients 10000 -waits.pings 5000 -waits.time 10s | grep -vE '^ *=== '

metrics-test: deps build ## have Debian's Prometheus and Chromium look at a server; without them their tests are skipped
	-@./scripts/deps.sh prometheus:prometheus chromium:chromium
	$(GO) test -C tests -count=1 -v -timeout 15m ./metrics | grep -vE '^ *=== '

page: build ## draw the page under a load with Chromium, for docs/page.md
	@./scripts/deps.sh chromium:chromium
	@mkdir -p docs/images
	$(GO) test -C tests -count=1 -v -timeout 15m ./metrics -run TestScreenshots -page.images "$(CURDIR)/docs/images" | grep -vE '^ *=== '

linear: deps build ## check 50 histories of 5,000 concurrent operations for linearizability
	$(GO) test -C tests -count=1 -v -timeout 2h ./linear -linear.histories 50

table: ## compare the keyspace with Go maps over N random operations, by default ten million, scans and resizes among them, and its types over fewer
	$(GO) test -count=1 -v -timeout 6h ./store -run 'TestModel$$|(List|Set)Model$$|CopiesAreIndependent' -ops $(or $(N),10000000) -names 100000

memory: build ## measure resident and counted bytes of N keys (10,000,000) and a million small collections of each shape, beside redis-server's
	$(GO) test -C tests -count=1 -v -timeout 3h ./memory -run 'TestMemory|TestIdle' -memory.all -memory.keys $(or $(N),10000000) -memory.values 1000000 -memory.bytes $$((1 << 29)) -memory.zset 1000000 | grep -vE '^ *=== '

evict: build ## write N keys (10,000,000) under each policy into processes that may have a third of the memory, have a million expire at once, and compare hit ratios with redis-server's
	$(GO) test -C tests -count=1 -v -timeout 3h ./memory -run 'TestPolicies|TestHitRatio' -memory.all -evict.keys $(or $(N),10000000) -evict.zipf 200000 | grep -vE '^ *=== '
	$(GO) test -C tests -count=1 -v -timeout 3h ./process -run TestManyKeysExpire -process.expiring 1000000 | grep -vE '^ *=== '

simulate: ## run the whole server through 2,000 hours of made-up time with 8 clients
	$(GO) test -count=1 -v -timeout 3h ./server -run TestSimulation -simulation.seeds $(or $(N),2000) | grep -vE '^ *=== '

logs: ## run the random tests of sliding logs twenty times over, and measure all kinds of them
	$(GO) test -count=1 -timeout 60m -run 'StampLog|ZSetLogModel|ZSetLogMemory' ./store -log.rounds 20

.PHONY: fleet cluster-bench
fleet: deps build ## run gateways before clusters and sentinels whose nodes die, stall, lose connections and give slots away, with all figures; SEED repeats
	$(GO) test -C tests -count=1 -v -timeout 60m ./fleet -fleet.whole -fleet.seed $(or $(SEED),0) | grep -vE '^ *=== '
	$(GO) test -C tests -count=1 -v -timeout 60m ./linear -run SlotsMove -linear.seed $(or $(SEED),0) -reshard.slots 4096 -reshard.moves 8192 -reshard.timeout 50ms | grep -vE '^ *=== '
	$(GO) test -C tests -count=1 -v -timeout 30m ./clients -clients.gateway -foreign -run '$(THROUGH_GATEWAY)|ForeignLimiters' -skip Watched | grep -vE '^ *=== '

cluster-bench: deps build ## measure what a decision costs by a gateway before a cluster, beside headgate alone, redis_rate and envoyproxy/ratelimit, and with leases beside gubernator, for TIME (2s) in each of 5 rounds
	@GOBIN="$(CURDIR)/bin" $(GO) install $(RATELIMIT) || echo "envoyproxy/ratelimit could not be built, and is left out" >&2
	test ! -x bin/service_cmd || set -- -cluster.ratelimit "$(CURDIR)/bin/service_cmd"; \
	$(GO) test -C tests -count=1 -v -timeout 60m ./bench -run TestClusterCosts -cluster $(or $(TIME),2s) "$$@" | grep -vE '^ *=== '
	@$(GO) build -C tests/bench/gubernator -o "$(CURDIR)/bin/gubernator" . || echo "gubernator could not be built, and is left out" >&2
	test ! -x bin/gubernator || set -- -lease.gubernator "$(CURDIR)/bin/gubernator"; \
	$(GO) test -C tests -count=1 -v -timeout 60m ./bench -run TestLeaseCosts -lease $(or $(TIME),2s) "$$@" | grep -vE '^ *=== '

.PHONY: api-bench
api-bench: deps build ## measure what a decision costs over gRPC, beside envoyproxy/ratelimit with redis-server, and over HTTP, beside a plain 200, for TIME (3s) in each of 5 rounds
	@GOBIN="$(CURDIR)/bin" $(GO) install $(RATELIMIT) || echo "envoyproxy/ratelimit could not be built, and is left out" >&2
	test ! -x bin/service_cmd || set -- -endpoints.ratelimit "$(CURDIR)/bin/service_cmd"; \
	$(GO) test -C tests -count=1 -v -timeout 30m ./bench -run TestEndpointCosts -endpoints $(or $(TIME),3s) "$$@" | grep -vE '^ *=== '

.PHONY: tls leaks soak soak-hostile
tls: deps build ## handshakes good and bad, 500 bad ones a second for 10 s, a certificate swapped 20 times under load, each way
	$(GO) test -C tests -count=1 -v -timeout 10m ./tls -tls.swaps 20 -tls.flood 10s | grep -vE '^ *=== '

leaks: deps build ## 200,000 connections each over TCP, a Unix socket and TLS, ended in all ways: nothing may stay behind; 5,000 slow senders
	$(GO) test -C tests -count=1 -v -timeout 60m ./soak -run 'TestLeaks|TestSlow' -leaks.conns 200000 -slow.conns 5000 | grep -vE '^ *=== '

soak: deps build ## a mixed load with everything on for T, by default 10m: resident memory, errors and stalls
	$(GO) test -C tests -count=1 -v -timeout 24h ./soak -run TestSoak -soak.time $(T) | grep -vE '^ *=== '

soak-hostile: deps build ## floods drawn at random for T beside 200 clients that limit, which are alone for QUIET (default 5m) before: wrong answers, waits, memory
	$(GO) test -C tests -count=1 -v -timeout 24h ./soak -run TestHostileSoak -soak.hostile $(T) -soak.quiet $(or $(QUIET),5m) -soak.seed $(or $(SEED),0) -soak.floods '$(FLOOD)' | grep -vE '^ *=== '

mutants: deps ## change one place of the source, N times (default 20), and print what no test notices. FILES names files or file:line, SUITES what runs after a package's own tests
	$(GO) run -C tests ./mutants -n $(or $(N),20) -seed $(or $(SEED),0) $(if $(SUITES),-suites '$(SUITES)') $(FILES)

bench: ## run the Go benchmarks, or those that BENCH matches, and compare with tests/bench/baseline.txt
	@mkdir -p bin
	@$(BENCHMARKS) > bin/bench.txt || { cat bin/bench.txt; exit 1; }
	$(GO) run $(BENCHSTAT) -filter '.unit:(sec/op OR allocs/op)' baseline=tests/bench/baseline.txt now=bin/bench.txt

bench-baseline: ## write tests/bench/baseline.txt anew, for which the machine should be quiet
	$(BENCHMARKS) > tests/bench/baseline.txt

.PHONY: compare
compare: deps build ## measure headgate beside redis-server, each load for TIME (default 2s), and write the table of docs/benchmarks.md
	$(GO) test -C tests -count=1 -v -timeout 60m ./bench -run 'TestCompare|TestLoads' -compare $(or $(TIME),2s)

literature: deps build ## measure what is printed of Redis 6.2 with 100 client threads, for TIME each (default 10s), and write the table of docs/benchmarks.md
	$(GO) test -C tests -count=1 -v -timeout 60m ./bench -run TestLiterature -literature $(or $(TIME),10s)

bench-page: deps build ## run headgate bench for TIME each (default 5s) and write what it prints into docs/bench.md
	$(GO) test -C tests -count=1 -timeout 60m ./bench -run TestPage -page $(or $(TIME),5s)

sizing: deps build ## measure resident bytes per key of each algorithm with N keys (default 1,000,000), and write docs/operations.md's table
	$(GO) test -C tests -count=1 -v -timeout 60m ./bench -run TestSizing -sizing $(or $(N),1000000)

floor: ## build bin/floor, which answers without understanding: the least that any server here can cost
	@mkdir -p bin
	cc -O2 -Wall -o bin/floor tests/bench/floor/floor.c

release: ## build archives, packages, a container image, the Helm chart, a Homebrew formula, SBOMs and checksums into dist/; the same commit gives the same bytes
	@./scripts/release.sh

deploy-check: deps build ## check deploy/ and the Dockerfile with helm, sentinels, Kubernetes' types, systemd-analyze, promtool, Prometheus, chroot; build the release twice. STAGES chooses stages of scripts/deploy_check.sh
	-@./scripts/deps.sh promtool:prometheus
	$(GO) test -C tests -count=1 -v -timeout 30m ./deploy -image -sentinel.failover | grep -vE '^ *=== '
	./scripts/deploy_check.sh $(STAGES)

bare: ## run the shell blocks of README.md and the guides in a bare Debian, a chroot, as root. WITHOUT='make test' leaves that line out
	./scripts/bare.sh

# The table of limiters comes first: others, and the rest of its own package, are generated from it.
generate: ## write the generated documents anew
	@$(GO) generate ./server/limiter
	@for m in $(MODULES); do $(GO) generate -C $$m ./...; done

clean: ## remove what was built
	rm -rf bin dist coverage.txt tests/.unkept
	$(GO) clean -testcache
