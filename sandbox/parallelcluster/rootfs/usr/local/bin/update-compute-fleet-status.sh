#!/opt/parallelcluster/venv/bin/python
import sys

sys.path.insert(0, "/usr/local/lib/sandbox")
from cookbook.fleet import update

sys.exit(update(sys.argv[1:]))
