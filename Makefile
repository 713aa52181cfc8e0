# `make demo` shows everything, `make up` runs a gateway, `make quick` checks most and `make test`
# everything; each sets up what it needs first.
.DEFAULT_GOAL := help
.PHONY: help demo up quick test test-xml nightly fuzz lint format lock accelerate clean

ARGS ?=

help:
	@echo 'make demo    set up and see it at work: a gateway, devices on bad links, publishers, learning'
	@echo 'make up      set up and run the gateway (ARGS="--help" for its options)'
	@echo 'make quick   after every change: static checks and the tests that take no time (ARGS="-k name")'
	@echo 'make test    set up and run every check of the gateway (ARGS="-k name" goes to pytest)'
	@echo 'make test-xml  the same for the XML package in packages/xml, which stands alone'
	@echo 'make nightly the long checks: 100,000 fault schedules (SCHEDULES=n), 5,000 of pushes'
	@echo '             (KILLS=n, SEED=n to repeat a series of kills), an hour of chaos (CHAOS_SECONDS=n,'
	@echo '             CHAOS_SEED=n), ten minutes without TLS and ten with clocks that move, 8,000 documents for libwbxml,'
	@echo '             3,000 rounds of XPath subscriptions against lxml (XPATH_ROUNDS=n),'
	@echo '             10,000 documents through each level of Weft, a tenth through max (WEFT_DOCUMENTS=n),'
	@echo '             6,000 random schemas for jing (RELAXNG_SEEDS=n), 300 schedules of limits'
	@echo '             (BUDGET_SCHEDULES=n), 12,000 traces of ranked topics (VOLUME_TRACES=n), 3,000 nights'
	@echo '             of quiet hours and digests (SCHEDULE_NIGHTS=n), a minute of fuzzing each (FUZZ_SECONDS=n)'
	@echo 'make fuzz    a coverage-guided fuzzer on each codec and on HTTP (TARGET=name, SECONDS=600, or SECONDS=keep)'
	@echo 'make lint    format, lint, type, layer and word checks only'
	@echo 'make format  format the code and fix what can be fixed'
	@echo 'make lock    pin the dependencies again (ARGS=--upgrade for newer versions)'
	@echo 'make accelerate  compile the hot modules, optional (ARGS=--clean to go back to pure Python)'
	@echo 'make clean   remove the environment and everything generated'

demo: .venv/.run .venv/.demo
	@exec .venv/bin/lasthop demo $(ARGS)

up: .venv/.run
	@exec .venv/bin/lasthop up $(ARGS)

quick: .venv/.dev
	@scripts/quick $(ARGS)

test: .venv/.dev
	@scripts/system-packages peers
	@scripts/check $(ARGS)

test-xml: .venv/.dev
	@scripts/system-packages xml
	@scripts/check-xml $(ARGS)

nightly: .venv/.dev
	@.venv/bin/lasthop sim faults --schedules $${SCHEDULES:-100000}
	@.venv/bin/lasthop sim pap --schedules $${PAP_SCHEDULES:-5000}
	@.venv/bin/lasthop sim air --schedules $${AIR_SCHEDULES:-5000}
	@LASTHOP_WAYS_MINUTES=$${WAYS_MINUTES:-60} LASTHOP_WAYS_SECONDS=$${WAYS_SECONDS:-120} .venv/bin/pytest --timeout 1200 -s -q tests/device/test_ways.py tests/device/test_ways_live.py
	@LASTHOP_BUDGET_SCHEDULES=$${BUDGET_SCHEDULES:-300} .venv/bin/pytest --timeout 1800 tests/simulation/test_budgets.py
	@VOLUME_TRACES=$${VOLUME_TRACES:-12000} .venv/bin/pytest --timeout 600 tests/decision/volume/test_oracle.py
	@SCHEDULE_NIGHTS=$${SCHEDULE_NIGHTS:-3000} .venv/bin/pytest --timeout 600 tests/decision/test_schedule.py
	@RANKED_TRACES=$${RANKED_TRACES:-10000} .venv/bin/pytest tests/simulation/test_ranked_oracle.py
	@RESETS=1 .venv/bin/pytest tests/delivery/conformance/test_resets.py
	@KILLS=$${KILLS:-50} .venv/bin/pytest -s tests/runtime/test_kills.py $(ARGS)
	@CHAOS_SECONDS=$${CHAOS_SECONDS:-3600} .venv/bin/pytest -s tests/runtime/chaos/test_chaos.py -k promise
	@CHAOS_SECONDS=$${PLAIN_CHAOS_SECONDS:-600} CHAOS_OPTIONS=--plain .venv/bin/pytest -s tests/runtime/chaos/test_chaos.py -k promise
	@CHAOS_SECONDS=$${CLOCK_CHAOS_SECONDS:-600} CHAOS_OPTIONS="--faketime $$(ls /usr/lib/*/faketime/libfaketimeMT.so.1)" .venv/bin/pytest -s tests/runtime/chaos/test_chaos.py -k promise
	@LASTHOP_STREAM_BYTES=$${STREAM_BYTES:-104857600} .venv/bin/pytest --timeout 1800 tests/runtime/test_streams.py
	@scripts/newest
	@scripts/fuzz all $${FUZZ_SECONDS:-60}
	@scripts/accelerate --into build/accelerated
	@PYTHONPATH=build/accelerated .venv/bin/pytest -n 2 tests/simulation/last_hop tests/decision tests/wire/pap tests/wire/wbxml
	@cd packages/xml && PYTHONPATH=../../build/accelerated WEFT_DOCUMENTS=$${WEFT_DOCUMENTS:-10000} ../../.venv/bin/pytest --timeout 3600 tests/weft
	@cd packages/xml && XPATH_ROUNDS=$${XPATH_ROUNDS:-3000} ../../.venv/bin/pytest --timeout 1200 tests/xpath/test_oracle.py
	@cd packages/xml && RELAXNG_SEEDS=$${RELAXNG_SEEDS:-40} ../../.venv/bin/pytest tests/relaxng/test_jing.py
	@NIGHTLY=1 PIPELINE_KILLS=3 .venv/bin/pytest -s -m nightly
	@WBXML_DOCUMENTS=$${WBXML_DOCUMENTS:-2000} .venv/bin/pytest tests/wire/wbxml/test_libwbxml.py

fuzz: .venv/.dev
	@scripts/fuzz $(or $(TARGET),all) $(or $(SECONDS),600)

lint: .venv/.dev
	@scripts/lint

format: .venv/.dev
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

lock: .venv/.run
	@scripts/lock $(ARGS)

accelerate: .venv/.dev
	@scripts/accelerate $(ARGS)

clean:
	rm -rf .venv .setup.lock build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	cd packages/xml && rm -rf dist .mypy_cache .pytest_cache .hypothesis .import_linter_cache
	find src packages -name '*.so' -delete
	find src packages tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.run: requirements/build.txt requirements/run.txt pyproject.toml packages/xml/pyproject.toml
	@scripts/setup run

# Without the pipeline the demo learns nothing, and says so; the next one tries again.
.venv/.demo: requirements/build.txt requirements/demo.txt pyproject.toml packages/xml/pyproject.toml
	@[ -e .venv/.dev ] || scripts/setup demo || echo 'setup: the pipeline could not be installed'

.venv/.dev: requirements/dev.txt pyproject.toml packages/xml/pyproject.toml
	@scripts/setup dev
