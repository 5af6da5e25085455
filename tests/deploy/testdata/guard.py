import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Guard:
    """Asks a limiter, and decides by itself while that cannot be asked: open lets everything pass, closed nothing."""

    def __init__(self, host, port, open, rest=1.0):
        self.client = redis.Redis(
            host, port, socket_connect_timeout=0.05, socket_timeout=0.05,
            retry=Retry(NoBackoff(), 0),  # a limiter that was asked twice has charged twice
        )
        self.open, self.rest, self.again = open, rest, 0.0

    def allow(self, user):
        """Says whether the request may pass, and if not, after how many seconds to try again."""
        if time.monotonic() < self.again:
            return self.open, self.rest
        try:
            reply = self.client.execute_command("RL.GCRA", "user:" + user, 10, 5, "1s")
        except redis.RedisError:  # no answer, LOADING, MISCONF, OOM …
            self.again = time.monotonic() + self.rest
            return self.open, self.rest
        return reply[0] == 0, reply[3] / 1000
