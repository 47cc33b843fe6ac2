# Everything a person types. CMake and Ninja do the work; `make` alone builds.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
T ?= 60
BASE ?= main
EVERY ?= 1
PY := .venv/bin/python

.PHONY: all run test check layers format fuzz bench accuracy install wheel docs sz clean setup setup-run setup-test setup-check
DOORS ?= $(notdir $(wildcard tests/doors/*))

.PHONY: test-doors test-jax replay test-docs test-wheel deb test-deb setup-fuzz setup-site setup-wheel setup-deb

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j$(JOBS)

$(BUILD)/build.ninja: | setup
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_ARGS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

setup: ; @tools/setup.sh build
setup-run: ; @tools/setup.sh build data
setup-test: ; @tools/setup.sh build data python jobs
setup-check: ; @tools/setup.sh build data python check
setup-fuzz: ; @tools/setup.sh build fuzz
setup-wheel: ; @tools/setup.sh build wheel
setup-deb: ; @tools/setup.sh build deb
setup-site: ; @tools/setup.sh build site

# Trains the MNIST network on Fashion-MNIST on this CPU, then compares with virtual chips.
run: setup-run all
	@$(BUILD)/weft train mnist --data fashion-mnist --epochs 3 --out runs/fashion-mnist

test: setup-test all
	@tools/test.sh $(BUILD)

# Programs that come through other frameworks, each in an environment of its own (gigabytes); DOORS=tensorflow for one.
test-doors: setup-test all
	@tools/doors.sh $(BUILD) $(DOORS)

# Programs under other versions of JAX (VERSIONS="0.4.35 0.12.0", default all), each in an environment of its own.
test-jax: setup-test all
	@$(PY) tests/frameworks/jax_versions.py $(VERSIONS)

# What a reviewer would run: include arrows, format, warnings as errors, sanitizers.
check: setup-check layers
	@tools/check.sh

layers: ; @python3 tools/layers.py
format: ; @find src include -name '*.[ch]' 2>/dev/null | xargs clang-format -i

fuzz: setup-fuzz
	@tools/fuzz.sh $(T)

bench: setup-test all
	@$(PY) bench/run.py

accuracy: all
	@tools/accuracy.sh $(BUILD)

# SkyPilot reads the tasks that weft writes for it, in a venv of its own; nothing is rented.
test-sky: all ; @tools/test_sky.sh $(BUILD)

# Shows that a change to the simulator changes nothing: estimates of all programs by this tree and by BASE.
replay: all
	@tools/replay.py $(BUILD) $(BASE) --every $(EVERY)

install: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j$(JOBS) products
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

# One wheel with all that it needs inside; test-wheel installs it in an empty environment and in Debian 13 and trains.
wheel: setup-wheel
	@tools/wheel.sh
test-wheel: wheel
	@tests/install/wheel.sh dist/weft-*.whl build-wheel/check

# Debian's packages, in dist; test-deb unpacks them and uses what is in them.
deb: setup-deb
	@tools/deb.sh build-deb
test-deb: deb
	@tests/install/deb.sh dist build-deb/check

# docs/ops.md, then the site in $(BUILD)/site; test-docs looks at it in a browser.
docs: all
	@python3 tools/gen_docs.py $(BUILD)
	@tools/site.sh $(BUILD)
test-docs: setup-site all
	@tools/site.sh --look $(BUILD)

sz: ; @find src include -name '*.[ch]' | xargs wc -l | sort -n | tail -40
clean: ; @rm -rf build build-* dist
