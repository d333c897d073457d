"""Postgres: its cluster, its command line and its readiness. Only ``initdb`` and ``postgres`` of the wheel are run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import psycopg2
import psycopg2.extensions

from pipeline.entrypoints.embedded import account, binaries, network
from pipeline.entrypoints.embedded.layout import PRIVATE_DIRECTORY, Layout
from pipeline.entrypoints.embedded.process import ProcessSpec
from pipeline.errors import ConfigurationError

SUPERUSER = "postgres"
DATABASE = "docmill"
# sun_path of a Unix socket holds 108 bytes with the closing NUL.
_LONGEST_SOCKET_PATH = 107
_CONNECT_TIMEOUT_S = 5

# A small machine: what the stack needs and no more. Durability is not traded: fsync and full_page_writes stay on.
_CONFIGURATION = {
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "512MB",
    "min_wal_size": "80MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "huge_pages": "off",
    "fsync": "on",
    "max_parallel_workers_per_gather": "0",
    "password_encryption": "scram-sha-256",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] %u@%d ",
    "log_min_duration_statement": "-1",
    "timezone": "UTC",
}


class Postgres:
    """One cluster in ``DIR/pg``. Its socket lies inside and is named by a link in ``DIR/run``, so that clients
    pass two private directories to reach it; it listens on no port unless the path is too long for a socket.
    """

    name = "postgres"
    start_timeout_s = 60.0

    def __init__(self, layout: Layout, port: int) -> None:
        self._layout = layout
        self.port = port
        self._programs = binaries.postgres()
        self._identity = account.postgres_identity()
        self._enter = account.Enter(self._identity)
        self._socket_directory = layout.postgres / "socket"

    # --- how to reach it ---

    @property
    def _uses_socket(self) -> bool:
        return len(os.fsencode(self._socket_directory / self._socket_name)) <= _LONGEST_SOCKET_PATH

    @property
    def _socket_name(self) -> str:
        return f".s.PGSQL.{self.port}"

    @property
    def host(self) -> str:
        """A directory with the socket, or the loopback address."""
        return str(self._layout.run) if self._uses_socket else network.LOOPBACK

    def dsn(self, role: str, database: str = DATABASE) -> str:
        """A connection string of libpq, for ``psycopg2.connect``."""
        return psycopg2.extensions.make_dsn(
            host=self.host,
            port=self.port,
            user=role,
            password=self.password(role),
            dbname=database,
            connect_timeout=_CONNECT_TIMEOUT_S,
        )

    def url(self, role: str, database: str = DATABASE) -> str:
        """A SQLAlchemy URL."""
        return (
            f"postgresql+psycopg2://{role}:{self.password(role)}@/{database}?host={quote(self.host)}&port={self.port}"
        )

    def password(self, role: str) -> str:
        return self._layout.secret(role)

    # --- life ---

    def prepare(self) -> None:
        """Make the cluster when there is none.

        Raises :class:`~pipeline.errors.ConfigurationError` for data of another major version or owner, and when the
        account cannot reach the data.
        """
        self._open_the_way()
        data = self._layout.postgres
        self._check_owner(data)
        if not (data / "PG_VERSION").exists():
            self._initialise(data)
        major = (data / "PG_VERSION").read_text().strip()
        if major != str(binaries.POSTGRES_MAJOR):
            raise ConfigurationError(
                f"{data} holds data of Postgres {major}, this is Postgres {binaries.POSTGRES_MAJOR}: choose an empty "
                f"--data directory and ingest again, or move the data over with the pg_dump of version {major}"
            )
        if self._uses_socket:
            link = self._layout.run / self._socket_name
            link.unlink(missing_ok=True)
            link.symlink_to(self._socket_directory / self._socket_name)

    def spec(self) -> ProcessSpec:
        listening = {
            "port": str(self.port),
            "listen_addresses": "" if self._uses_socket else network.LOOPBACK,
            "unix_socket_directories": str(self._socket_directory) if self._uses_socket else "",
            "unix_socket_permissions": "0700",
        }
        options = [f"--{key}={value}" for key, value in {**_CONFIGURATION, **listening}.items()]
        return ProcessSpec(
            name=self.name,
            command=(str(self._programs.postgres), "-D", str(self._layout.postgres), *options),
            log=self._layout.logs / "postgres.log",
            environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            enter=account.Enter(
                self._identity, self._enter.covered, self._enter.visible, own_directory=self._socket_directory
            ),
            # Fast shutdown: SIGTERM would wait for every client to leave.
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
            grace_s=20.0,
        )

    def is_ready(self) -> bool:
        """A ``SELECT 1`` as the superuser, by password."""
        try:
            connection = psycopg2.connect(self.dsn(SUPERUSER, "postgres"))
        except psycopg2.OperationalError:
            return False
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except psycopg2.OperationalError:
            return False
        finally:
            connection.close()
        return True

    # --- first start ---

    def _open_the_way(self) -> None:
        if self._identity.is_ours:
            return
        needed = (self._layout.postgres, self._programs.home, self._programs.libraries)
        closed = account.closed_directories(needed, self._identity)
        if not closed:
            return
        if account.can_cover():
            self._enter = account.Enter(self._identity, closed, needed)
            return
        data_closed = account.closed_directories((self._layout.postgres,), self._identity)
        if data_closed:
            raise ConfigurationError(
                f"the account {account.ACCOUNT} may not pass {data_closed[0]}, and this system allows no private "
                "mounts: choose a --data directory it can reach, or run docmill as an ordinary user"
            )
        self._programs = self._copied_programs()

    def _copied_programs(self) -> binaries.PostgresBinaries:
        """The programs inside the data directory, for an account that cannot reach the virtual environment."""
        target = self._layout.postgres_binaries
        copied = binaries.PostgresBinaries(
            target / "package" / self._programs.home.name, target / self._programs.libraries.name
        )
        if not target.exists():
            draft = target.with_name(target.name + ".new")
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(self._programs.home, draft / "package" / self._programs.home.name, symlinks=True)
            shutil.copytree(self._programs.libraries, draft / self._programs.libraries.name, symlinks=True)
            draft.rename(target)
        return copied

    def _check_owner(self, data: Path) -> None:
        if not data.exists():
            data.mkdir(mode=PRIVATE_DIRECTORY)
            if not self._identity.is_ours:
                os.chown(data, self._identity.uid, self._identity.gid)
        owner = data.stat().st_uid
        if owner != self._identity.uid:
            raise ConfigurationError(
                f"{data} belongs to user {owner}, Postgres would run as user {self._identity.uid}; "
                "start the stack as the user who made it, or choose another --data"
            )

    def _initialise(self, data: Path) -> None:
        # The password goes through memory: no file of the account's holds it, not even for a moment.
        secret = os.memfd_create("password")
        try:
            os.write(secret, self.password(SUPERUSER).encode())
            command = [
                str(self._programs.initdb), "-D", str(data), "-U", SUPERUSER,
                "--auth=scram-sha-256", f"--pwfile=/proc/self/fd/{secret}", "--no-instructions",
                "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
            ]  # fmt: skip
            made = subprocess.run(
                command,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                cwd="/",
                pass_fds=(secret,),
                preexec_fn=self._enter,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            os.close(secret)
        if made.returncode != 0:
            log = self._layout.logs / "initdb.log"
            log.write_text(made.stdout + made.stderr)
            raise ConfigurationError(f"initdb failed; see {log}")
