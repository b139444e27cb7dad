#!/opt/parallelcluster/venv/bin/python
import sys

sys.path.insert(0, "/usr/local/lib/sandbox")
from cookbook.fleet import get

sys.exit(get(sys.argv[1:]))
