"""A WSGI application that allows each client address ten requests at once and five a second. Install redis (redis-py), then:

    REDIS_URL=redis://127.0.0.1:6379 PORT=8000 python3 wsgi.py
"""

import math
import os
import sys
import time
from wsgiref.simple_server import make_server

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

limiter = redis.Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_connect_timeout=0.05, socket_timeout=0.05,  # seconds
    retry=Retry(NoBackoff(), 0),  # a call that was sent twice may be charged twice
)
again = 0.0  # when the limiter may be asked again after a failure


def ask(*command):
    """Sends one command. Without an answer within 50 ms requests pass (this limiter fails open), and for a second it is not asked again."""
    global again
    if time.monotonic() < again:
        return 0, 0
    try:
        limited, _, _, retry_after, _ = limiter.execute_command(*command)
        return limited, retry_after
    except redis.RedisError as err:
        print("limiter:", err, file=sys.stderr)
        again = time.monotonic() + 1
        return 0, 0


def limit(app):
    def limited_app(environ, start_response):
        limited, retry_after = ask("RL.GCRA", "ip:" + environ["REMOTE_ADDR"], 10, 5, "1s")
        if limited:
            start_response("429 Too Many Requests", [("Retry-After", str(math.ceil(retry_after / 1000)))])
            return [b"too many requests\n"]
        return app(environ, start_response)
    return limited_app


@limit
def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello\n"]


if __name__ == "__main__":
    make_server("127.0.0.1", int(os.environ.get("PORT", 8000)), hello).serve_forever()
