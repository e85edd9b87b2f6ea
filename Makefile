# Everything a person or CI runs. Build results go to one folder outside the checkout, so that a
# fresh clone does not build again what an older one has built.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/ferroplane/target
TOOLS := $(HOME)/.cache/ferroplane/tools
PREFIX ?= /usr/local
CARGO ?= cargo
GO ?= go
APISERVER := v0.36.0
ARGS ?= --bind-address=127.0.0.1

.PHONY: run test check unit integration crash-test etcd3-suite install need need-deny need-go need-postgres tools build

## run: build the server and start it (embedded store, files in .kcp); ARGS are start's flags
run: build
	exec $(CARGO_TARGET_DIR)/release/ferroplane start $(ARGS)

build: need
	$(CARGO) build --release --locked --package ferroplane

## test: formatting, lints, the house's own checks, unit, conformance and integration tests
test: check unit integration

check: need need-deny
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) xtask tidy
	$(TOOLS)/bin/cargo-deny --log-level error --locked check bans licenses sources

unit: need need-postgres
	$(CARGO) test --workspace --locked --exclude it

# What knows nothing of the store runs on PostgreSQL as well (the test that is left out compacts the
# SQLite file). With KCP_BIN and KINE_BIN (a Go kcp
# and a kine) the exchange of stores is tested too.
integration: need need-postgres tools build
	FERROPLANE=$(CARGO_TARGET_DIR)/release/ferroplane TOOLS=$(TOOLS) \
	  $(CARGO) test --locked --package it
	FERROPLANE=$(CARGO_TARGET_DIR)/release/ferroplane TOOLS=$(TOOLS) STORE=postgres \
	  $(CARGO) test --locked --package it -- bad_input bindings client_go objects paths watch workspaces \
	  --skip row_16_and_17_history_that_is_gone

## crash-test: ten minutes of kill -9 under write load
crash-test: need tools build
	FERROPLANE=$(CARGO_TARGET_DIR)/release/ferroplane TOOLS=$(TOOLS) CRASH_SECS=600 \
	  $(CARGO) test --locked --package it crash -- --nocapture

## etcd3-suite: the storage tests of k8s.io/apiserver against `ferroplane store`, in a copy of that module
etcd3-suite: need need-go build
	rm -rf $(TOOLS)/apiserver && mkdir -p $(TOOLS)
	cd $(TOOLS) && $(GO) mod download k8s.io/apiserver@$(APISERVER) && \
	  cp -r $$($(GO) env GOMODCACHE)/k8s.io/apiserver@$(APISERVER) apiserver && chmod -R u+w apiserver
	cp tests/tools/etcd3suite/test_server.go.txt $(TOOLS)/apiserver/pkg/storage/etcd3/testserver/test_server.go
	cd $(TOOLS)/apiserver && FERROPLANE=$(CARGO_TARGET_DIR)/release/ferroplane $(GO) test -count=1 -v \
	  ./pkg/storage/etcd3 > $(TOOLS)/etcd3-suite.log 2>&1; code=$$?; \
	  count() { grep -ac "^ *--- $$1" $(TOOLS)/etcd3-suite.log; }; \
	  echo "$$(count PASS) passed, $$(count FAIL) failed: $(TOOLS)/etcd3-suite.log"; exit $$code

## install: the binary and the kubectl plugins, under PREFIX/bin
install: build
	install -d $(PREFIX)/bin
	install $(CARGO_TARGET_DIR)/release/ferroplane $(PREFIX)/bin/ferroplane
	for name in kubectl-ws kubectl-kcp kubectl-create_workspace kubectl-create-workspace; do \
	  ln -sf ferroplane $(PREFIX)/bin/$$name; done

# The test programs in Go: kubectl at a current version, and a client-go client.
tools: need-go
	mkdir -p $(TOOLS)
	cd tests/tools/kubectl && $(GO) build -o $(TOOLS)/kubectl .
	cd tests/tools/clientgo && $(GO) build -o $(TOOLS)/clientgo .
	cd tests/tools/etcdctl && $(GO) build -o $(TOOLS)/etcdctl .

need:
	@command -v $(CARGO) >/dev/null || { echo "cargo (Rust 1.95 or newer) is missing: install it with rustup"; exit 1; }
	@command -v cc >/dev/null || { echo "installing gcc with apt-get (the bundled SQLite and TLS library are C)"; \
	  apt-get update -qq && apt-get install -y -qq gcc libc6-dev; }

need-deny:
	@test -x $(TOOLS)/bin/cargo-deny || { echo "building cargo-deny (checks deny.toml), once"; \
	  $(CARGO) install --quiet --locked --root $(TOOLS) cargo-deny@0.20.2; }

# The tests start servers of their own, in temporary folders, as an unprivileged user. The package
# must not start one: create_main_cluster is off while it is installed.
need-postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
	  echo "installing postgresql with apt-get (the tests of the PostgreSQL store start one)"; \
	  apt-get update -qq && apt-get install -y -qq postgresql-common && \
	  sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf && \
	  apt-get install -y -qq postgresql; }

need-go:
	@command -v $(GO) >/dev/null || { echo "go (1.26 or newer) is missing: the tests build kubectl with it"; exit 1; }
