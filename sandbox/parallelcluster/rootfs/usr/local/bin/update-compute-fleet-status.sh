#!/usr/bin/env bash
run='import sys; from cookbook.fleet import update; sys.exit(update(sys.argv[1:]))'
PYTHONPATH=/usr/local/lib/sandbox exec /opt/parallelcluster/venv/bin/python -c "$run" "$@"
