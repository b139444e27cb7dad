"""Serve the emulated AWS API: ``python -m sandbox.emulator --host 127.0.0.1 --port 5199 --pending 1``."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from sandbox.account import token
from sandbox.emulator import install, state
from sandbox.emulator.ec2 import catalog
from sandbox.paths import Paths


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.emulator")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5199)
    parser.add_argument("--pending", type=float, default=0.0, help="seconds from pending to running")
    parser.add_argument("--waiting", choices=state.MODES, default="succeed", help="who signals for a head node")
    parser.add_argument(
        "--token-file", type=Path, default=Paths.from_environment().token, help="the word that control calls must know"
    )
    options = parser.parse_args()
    state.STARTED_WITH["mode"] = state.WAITING["mode"] = options.waiting
    os.environ["MOTO_PORT"] = str(options.port)
    catalog.prepare()
    install(options.pending)

    from moto import backends
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.server import run_simple

    from sandbox.emulator.server.control import Application

    # moto lists its folder of services for each request.
    services = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: services
    # The call log says more than a line for each request.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    word = token.make(options.token_file)

    def users() -> set[int]:
        """Root, this process' user, and whoever called sudo, to whom the file is given when the sandbox is up."""
        with suppress(FileNotFoundError):
            return {0, os.geteuid(), options.token_file.stat().st_uid}
        return {0, os.geteuid()}

    application = Application(DomainDispatcherApplication(create_backend_app), word, users)
    run_simple(options.host, options.port, application, threaded=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
