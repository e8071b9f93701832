# cnibench: make demo measures, make test tests.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# scripts/deps.sh puts the toolchain of go.mod here where the distribution has an older one.
export PATH := $(CURDIR)/.toolchain/bin:$(PATH)
SUDO := $(shell [ "$$(id -u)" -eq 0 ] || command -v sudo)

.PHONY: build demo diagnose test test-vm e2e fidelity gate articles bench truth aa duet power explain lint snapshot first-answer generate cover size weight clean deps

build: ## the static binary bin/cnibench
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/cnibench/cnibench/internal/cli.version=$(VERSION)" -o bin/cnibench .

deps: ## install what the lab needs and this machine lacks
	sh scripts/deps.sh run

demo: deps build ## measure every dataplane that this machine can build; result.jsonl and report.md
	@[ ! -e result.jsonl ] || mv -f result.jsonl result.jsonl.old
	$(SUDO) bin/cnibench run --file examples/demo.yaml -o result.jsonl
	bin/cnibench report -f markdown result.jsonl > report.md
	@echo "result.jsonl has every trial, report.md the comparison" >&2

test: ## everything, kernel included; counts and names what was skipped
	sh scripts/deps.sh test
	sh scripts/test.sh

test-vm: ## what this machine's kernel lacks, on a distribution's kernel in an emulated guest
	sh scripts/deps.sh vm
	sh scripts/test-vm.sh

e2e: ## real Kubernetes clusters on this machine: measured, tested with their faults, and taken down (two hours)
	sh scripts/deps.sh e2e
	$(SUDO) sh scripts/e2e.sh

fidelity: ## the lab beside real clusters with flannel, interleaved; writes its table into docs/results/fidelity.md
	sh scripts/deps.sh e2e
	$(SUDO) sh scripts/fidelity.sh

bench: ## the load engine against iperf3, netperf, wrk and plain C, interleaved; writes docs/results/engine.md
	sh scripts/deps.sh bench
	go build -trimpath -o bin/bench ./internal/tool/bench
	$(SUDO) bin/bench > docs/results/engine.md.new
	mv docs/results/engine.md.new docs/results/engine.md

aa: ## equal runs, alone, beside a compile job and beside bursts, and how far they differ
articles: ## the four published comparisons, repeated in the lab, with each of their figures and claims
diagnose: ## faults planted in labs by plain tools, and what diagnose calls them (80 minutes)
duet: ## two profiles measured at the same time beside in turn
explain: ## costs of known place, and the parts that they are found in
gate: ## the action's commands on pairs of a base and a change whose verdict is known
power: ## costs of known size, and how often a comparison of two files finds them
truth: ## links of known rate, delay and loss; refuses a busy machine
aa: flags = -table internal/judge/compare/runs.tsv
aa articles diagnose duet explain gate power truth: build ## each writes its table into docs/results/NAME.md
	sh scripts/deps.sh run
	go build -trimpath -o bin/campaign ./internal/tool/campaign
	$(SUDO) bin/campaign $@ $(flags) -document docs/results/$@.md bin/cnibench

lint: ## go vet, staticcheck and plain English, for Linux and for the portable core on darwin
	go vet ./...
	go run $(STATICCHECK) ./...
	go run ./internal/tool/plainwords
	GOOS=darwin GOARCH=arm64 go vet . ./internal/cli ./internal/conduct/... ./internal/report/... ./internal/judge/... ./internal/plan ./internal/measure/... ./internal/external/... ./internal/env/image/... ./internal/env/kube/...
	go vet -tags e2e ./e2e

snapshot: ## what a release would be, of this commit: binaries, packages, image, chart, into bin/dist and bin/release
	scripts/release.sh snapshot

first-answer: ## the deb of make snapshot, installed in a clean Debian and measured there: fails after 60 s without a first answer
	$(SUDO) scripts/first-answer.sh

generate: ## generated documents
	go generate ./...

cover: ## coverage of the pure packages
	go test -coverprofile=coverage.out ./internal/... && go tool cover -func=coverage.out | tail -1

size: ## lines of the product, of tools, of tests and of BPF C by folder
	@go run ./internal/tool/weight size

weight: build ## bytes of the binary, an agent's start and memory, a build with an empty cache
	@go run ./internal/tool/weight binary bin/cnibench

clean:
	rm -rf bin coverage.out
