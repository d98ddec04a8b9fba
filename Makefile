# Two commands, each of which does all of its own set-up on a fresh Debian, Ubuntu or Fedora:
#
#   make run     build, then weigh auditing (or seccomp, where auditing cannot be changed)
#   make test    run every check and test
#
# CARGO_TARGET_DIR is respected; the program is target/release/weigh.

export PATH := $(HOME)/.cargo/bin:$(PATH)

target := $(or $(CARGO_TARGET_DIR),target)
weigh  := $(target)/release/weigh

run: build
	$(weigh) compare || [ $$? = 3 ]  # 3: measured, but not everything is decided

# Linked statically, so that the one file runs when it is copied to another machine.
build: deps
	cargo rustc --locked --release --bin weigh -- -C target-feature=+crt-static

test: deps test-deps
	cargo fmt --check
	rustfmt --edition 2024 --check src/treatment/kind/*.rs
	cargo clippy --locked --all-targets -- -D warnings
	cargo test --locked --no-fail-fast

install: build
	install -D -m 755 $(weigh) $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/weigh

deps:
	@scripts/install-deps build

test-deps:
	@scripts/install-deps test

clean:
	cargo clean

.PHONY: run build test install deps test-deps clean
