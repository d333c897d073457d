"""``docmill up`` with stand-ins for Docmill's own processes: ``python -m tests.stack_driver OPTIONS-AS-JSON``.

The servers, the supervision and every process are real; only what the application processes do is not. One answers
HTTP, one has children (one in its group, one in a session of its own), one may be told to die at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline.entrypoints.embedded import stack
from pipeline.entrypoints.embedded.processes import Application, Plan, Proof

_GATEWAY = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'ok')
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
# Ignores SIGTERM itself, so that only the end of its group or the keeper takes the children away.
_PARENT = """
import signal, subprocess, sys, time
subprocess.Popen([sys.executable, '-c', 'import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)'])
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)
time.sleep(600)
"""


def _applications(dying: bool) -> Callable[[Plan], tuple[Application, ...]]:
    def make(plan: Plan) -> tuple[Application, ...]:
        python = sys.executable
        worker = (python, "-c", "import sys; sys.exit(7)") if dying else (python, "-c", _PARENT)
        return (
            Application("worker", worker, Proof.ALIVE, grace_s=3.0),
            Application(
                "gateway", (python, "-c", _GATEWAY, plan.host, str(plan.port)), Proof.READYZ, f"{plan.url}/readyz"
            ),
        )

    return make


def main(arguments: dict[str, object]) -> int:
    port, ready_file = arguments.get("port"), arguments.get("ready_file")
    options = stack.UpOptions(
        issue_token=lambda environment: f"token for {len(environment['DOCMILL_JWT_SECRET'])} letters",
        data=Path(str(arguments["data"])),
        port=int(str(port)) if port is not None else None,
        ready_file=Path(str(ready_file)) if ready_file is not None else None,
        host=str(arguments.get("host", "127.0.0.1")),
        flower=False,
        applications=_applications(bool(arguments.get("dying"))),
    )
    return stack.run_stack(options)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
