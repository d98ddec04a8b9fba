# Each of these does all of its own set-up on a fresh Debian, Ubuntu or Fedora:
#
#   make           build
#   make run       build, then weigh auditing (or seccomp, where auditing cannot be changed)
#   make test      all checks and unit tests, and each command and part once from end to end: six minutes
#   make test-all  all other end-to-end tests: twenty minutes
#
# And make check-hard, for hours: many kills, long fuzzing, planted noise, advisories (scripts/check-hard).
#
# CARGO_TARGET_DIR is respected; the program is target/release/weigh.

export PATH := $(HOME)/.cargo/bin:$(PATH)

target := $(or $(CARGO_TARGET_DIR),target)
weigh  := $(target)/release/weigh

.DEFAULT_GOAL := build

run:
	@scripts/say-what-run-does
	@$(MAKE) --no-print-directory build
	$(weigh) compare || [ $$? = 3 ]  # 3: measured, but not everything is decided

# Linked statically, so that the one file runs when it is copied to another machine.
build: deps
	cargo rustc --locked --release -p weigh --bin weigh -- -C target-feature=+crt-static
	@echo 'Built $(weigh). Type this path in place of weigh, or install it: sudo make install'

# The same for AArch64, on any machine.
aarch64: export CC := aarch64-linux-gnu-gcc
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
aarch64: deps
	scripts/install-deps laboratory
	cargo rustc --locked --release --target aarch64-unknown-linux-gnu -p weigh --bin weigh -- -C target-feature=+crt-static

test: deps test-deps
	cargo fmt --all --check
	rustfmt --edition 2024 --check crates/weigh-treatment/src/kind/*.rs crates/weigh-fixture/src/kind/*.rs \
		crates/weigh-report/src/formats/*.rs crates/weigh-import/src/formats/*.rs \
		crates/weigh-dialect/src/tables/*.rs \
		crates/weigh-workload/src/setup/kind/*.rs crates/weigh-engine/src/plan/kind/*.rs
	scripts/run-tests --quick

test-all: deps test-deps
	scripts/run-tests --rest

# Sentences of more than 40 words in the documents and the help, and the spelling.
prose: deps
	scripts/install-deps prose
	cargo build --locked
	scripts/prose $(target)/debug/weigh
	codespell

# STEPS="fuzz kill" runs these alone.
check-hard: deps test-deps
	scripts/check-hard $(STEPS)

# Where they are looked for. DESTDIR is for packages: what is below it is moved to / later.
prefix := $(DESTDIR)$(or $(PREFIX),/usr/local)
man1   := $(prefix)/share/man/man1
bash   := $(prefix)/share/bash-completion/completions/weigh
zsh    := $(prefix)/share/zsh/site-functions/_weigh
fish   := $(prefix)/share/fish/vendor_completions.d/weigh.fish

# Under sudo, root's cargo may be missing or a different version: install what was built without sudo.
install: $(if $(and $(SUDO_USER),$(wildcard $(weigh))),,build)
	$(weigh) --version
	install -D -m 755 $(weigh) $(prefix)/bin/weigh
	install -d $(man1) $(dir $(bash)) $(dir $(zsh)) $(dir $(fish))
	$(weigh) man --directory $(man1)
	$(weigh) completions bash > $(bash)
	$(weigh) completions zsh > $(zsh)
	$(weigh) completions fish > $(fish)

uninstall:
	rm -f $(prefix)/bin/weigh $(man1)/weigh.1 $(man1)/weigh-*.1 $(bash) $(zsh) $(fish)

deps:
	@scripts/install-deps build

test-deps:
	@scripts/install-deps test

clean:
	cargo clean

.PHONY: run build aarch64 test test-all prose check-hard install uninstall deps test-deps clean
