# The front door. `make` lists what there is; the work is done by tools/ and packaging/.

PREFIX ?= /usr/local
ARGS ?=
NAME ?=
SECONDS ?= 30
ONLY ?=
SUITE ?= 12
PART ?= unit tsan lint fuzz integration isolation attack faults

packages = @packaging/install-packages

.PHONY: help build run test soak vm bench lint format asan tsan fuzz cover install deb clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

build: ## the programs, in build/ (CC=clang for another compiler)
	$(packages) build run
	@tools/build gcc programs

run: build ## build and serve on 127.0.0.1:8787 (ARGS="--no-auth" for flags; as root with sandboxes)
	@packaging/make-user
	@exec build/burrow serve $(ARGS)

test: ## everything that must hold, in a quarter of an hour (ONLY=word for some test programs)
	$(packages) build run test lint
	@packaging/install-clients
	@tools/run-suite test --only "$(ONLY)"

soak: ## what takes long: PART=unit|tsan|lint|fuzz|integration|isolation|attack|faults, or all of them (FUZZ_SECONDS=120)
	$(packages) build run test lint
	@packaging/install-clients
	@result=0; for part in $(PART); do tools/run-suite soak $$part || result=1; done; exit $$result

vm: ## the package on a Debian of its own, in QEMU (SUITE=12|13, ONLY=word; VM_KEEP=1 leaves it running)
	$(packages) build run vm
	@tests/vm/run "$(SUITE)" $(ONLY)

bench: ## measure beside nginx, bubblewrap, ... (ONLY=name,name for some rows)
	$(packages) build run bench
	@tools/build bench
	@bench/run --build build-bench --only "$(ONLY)"

lint: ## clang-tidy with its analyzer, and cppcheck
	$(packages) build run test lint
	@tools/build clang generated
	@tools/lint

format: ## rewrite C files by .clang-format
	$(packages) build test
	@tools/check-format --fix

asan: ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(packages) build run
	@tools/build asan
	@tools/run-tests --unit build-asan --without-aslr

tsan: ## unit tests under ThreadSanitizer
	$(packages) build run
	@tools/build tsan
	@tools/run-tests --unit build-tsan --without-aslr

fuzz: ## fuzz for a while (NAME=url SECONDS=60)
	$(packages) build test
	@tools/build fuzz
	@tools/run-fuzzers --seconds $(SECONDS) $(NAME)

cover: ## lines reached by the unit tests, per file
	$(packages) build run cover
	@tools/build cover
	@tools/cover

install: build ## into PREFIX=/usr/local (and DESTDIR)
	@meson configure build -Dprefix="$(PREFIX)"
	@tools/build gcc programs >/dev/null
	@DESTDIR="$(DESTDIR)" meson install -C build --quiet --no-rebuild
	@[ -n "$(DESTDIR)" ] || packaging/make-user

deb: build ## a Debian package, in build/
	$(packages) deb
	@packaging/make-deb

clean: ## remove everything built
	rm -rf build build-*
