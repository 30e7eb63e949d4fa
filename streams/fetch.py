"""How Faust gets its records: the same requests, without two waits that leave an agent idle while records are there.

1. Only one fetch at a time is out to a broker. Once some partitions have records that nobody took yet, aiokafka asks
   for the others alone; where those are quiet, the broker holds that request for `fetch_max_wait_ms`, and the busy
   partitions aren't asked for meanwhile. Faust writes 1,500 ms there and has no setting for it.
2. A queue that is nearly full takes its partitions from the next request, and when all are out Faust sleeps a second,
   or waits a second for the quiet ones, though the queue empties in milliseconds. The queue is bounded as it is
   (`stream_buffer_maxsize`, a put waits), so nothing is won by it.
"""

from __future__ import annotations

from typing import Any, Final

import faust
from faust.transport.drivers import aiokafka as driver

#: A bound of the stall, and the price of an idle agent: so many requests a second.
FETCH_WAIT_SECONDS: Final = 0.1


def use_short_waits(app: faust.App) -> None:
    """Before the app has used its transport."""
    app.transport = _Transport(app.conf.broker_consumer, app)


class _Thread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Read when the consumer starts. Both libraries are pinned, and a test looks at it.
        consumer._fetch_max_wait_ms = int(FETCH_WAIT_SECONDS * 1000)  # noqa: SLF001 - there is no other way
        return consumer


class _Consumer(driver.Consumer):
    def _new_consumer_thread(self) -> _Thread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)

    def on_buffer_full(self, tp: Any) -> None:
        """The partition stays in the next request."""

    def on_buffer_drop(self, tp: Any) -> None:
        """It never left."""


class _Transport(driver.Transport):
    Consumer = _Consumer
