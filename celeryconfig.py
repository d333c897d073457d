"""Every Celery setting, with the reason beside it. The one place where settings are read at import."""

from __future__ import annotations

from kombu.entity import Exchange, Queue

from beat_schedule import SCHEDULE
from pipeline import flow
from pipeline.errors import ConfigurationError
from pipeline.settings import load, require

_settings = load()

broker_url = require(_settings.broker_url, "DOCMILL_BROKER_URL", "a Redis or RabbitMQ URL")

# No result backend: with a frozen Redis it hangs the publisher, and Postgres is the ledger anyway.
result_backend = None
task_ignore_result = True

# Ids as JSON, nothing else, either way: a pickle is code.
task_serializer = "json"
accept_content = ["json"]

# A message is acknowledged after its work, so that a dead worker's message comes back.
task_acks_late = True
# A lost child is retried a bounded number of times (see the base task), never rejected into an endless loop.
task_reject_on_worker_lost = False
task_retry_on_worker_lost = True
# Twice, after the dead worker's lease has ended; by then the sweep has usually put the work back.
task_annotations = {"*": {"max_retries": 2, "default_retry_delay": _settings.lease_s + 5}}
# A failed or timed-out task is not redelivered: the ledger's sweep decides what runs again.
task_acks_on_failure = True
task_acks_on_timeout = True

# One message a process: a long task must not sit on others' short ones.
worker_prefetch_multiplier = 1
worker_disable_prefetch = True
# Against slow drift only; a document that grows without bound is stopped by the sandbox.
worker_max_tasks_per_child = 100
worker_max_memory_per_child = 600_000
# Unfinished messages are back within seconds of SIGTERM (with REMAP_SIGTERM=SIGQUIT).
worker_soft_shutdown_timeout = 20
# An idle worker has nothing to give back and leaves at once.
worker_enable_soft_shutdown_on_idle = False
# A task whose broker is gone would run twice; its lease ends, and one of the two is refused.
worker_cancel_long_running_tasks_on_connection_loss = True
# Flower; arguments are ids only.
worker_send_task_events = True
worker_hijack_root_logger = False
# A worker that cannot find its broker at start keeps trying; the supervisor sees that it is not ready.
broker_connection_retry_on_startup = True
broker_connection_max_retries = 30

if _settings.visibility_timeout_s <= flow.LONGEST_HARD_LIMIT_S:
    raise ConfigurationError(
        f"DOCMILL_VISIBILITY_TIMEOUT_S is {_settings.visibility_timeout_s}; it expects more than the longest task"
        f" limit, {flow.LONGEST_HARD_LIMIT_S} seconds, or long tasks would run twice"
    )
broker_transport_options = {
    # Two attempts of the longest task fit; recovery does not wait for this, the leases see to it.
    "visibility_timeout": _settings.visibility_timeout_s,
    # The default is to wait for ever.
    "socket_timeout": 10,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
    # Unacknowledged messages of a dead worker are looked for often enough to be found in seconds.
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    # Several deployments may share one Redis.
    "global_keyprefix": _settings.broker_key_prefix,
    # Housekeeping is short and heals everything else; then people who wait, then bulk work.
    "queue_order_strategy": "priority",
}

# Explicit queues: a misspelt one is an error, not a black hole.
_exchange = Exchange("docmill", type="direct")
_ORDER = (
    flow.Queue.MAINTENANCE,
    flow.Queue.INTERACTIVE,
    flow.Queue.INDEX,
    flow.Queue.EXTRACT,
    flow.Queue.OCR,
    flow.Queue.EMBED,
    flow.Queue.GRAPH,
    flow.Queue.EXPORT,
)
task_queues = [Queue(str(name), _exchange, routing_key=str(name)) for name in _ORDER]
task_create_missing_queues = False
task_default_queue = str(flow.Queue.MAINTENANCE)
task_default_exchange = "docmill"
task_default_routing_key = str(flow.Queue.MAINTENANCE)

# The publisher gives up quickly: a bell that is not heard is rung again by the sweep.
task_publish_retry = False

beat_schedule = SCHEDULE
# A beat that was down for a while does not fire what it missed.
beat_cron_starting_deadline = 300
beat_max_loop_interval = 5
