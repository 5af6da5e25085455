"""Debian's python3-redis, with its defaults."""
import hashlib
import os
import sys
import threading
import time

import redis

PORT = int(os.environ["HEADGATE_PORT"])
EVERY_BYTE = bytes(range(256))
client = redis.Redis(port=PORT)
failed = False


def step(run):
    global failed
    try:
        run()
        print("ok", run.__name__, flush=True)
    except BaseException as err:
        failed = True
        print("not ok", run.__name__ + ":", repr(err), flush=True)


@step
def connect():
    assert client.ping() is True
    assert client.set("py:k", "v", px=60_000) is True
    assert client.get("py:k") == b"v"
    assert client.get("py:absent") is None
    try:
        client.incr("py:k")
        raise AssertionError("INCR of a word passed")
    except redis.ResponseError as err:
        assert "not an integer" in str(err)


@step
def pipeline():
    client.delete("py:n")
    with client.pipeline(transaction=False) as p:
        for _ in range(1000):
            p.incr("py:n")
        assert p.execute()[-1] == 1000


@step
def transaction():
    now = int(time.time() * 1000)
    with client.pipeline() as p:
        p.delete("py:w")
        p.zadd("py:w", {"a": now, "b": now + 1})
        p.zremrangebyscore("py:w", 0, now)
        p.zcard("py:w")
        p.pexpire("py:w", 1000)
        assert p.execute() == [0, 2, 1, 1, True]


@step
def watch():
    with client.pipeline() as p:
        p.watch("py:watched")
        client.set("py:watched", "changed")
        p.multi()
        p.set("py:watched", "mine")
        try:
            p.execute()
            raise AssertionError("EXEC after a change passed")
        except redis.WatchError:
            pass
    assert client.get("py:watched") == b"changed"


@step
def script():
    text = "return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1} -- %d.%f" % (os.getpid(), time.time())
    try:
        client.evalsha(hashlib.sha1(text.encode()).hexdigest(), 1, "py:k", "x", 41)
        raise AssertionError("EVALSHA of an unknown script passed")
    except redis.exceptions.NoScriptError:
        pass
    stamp = client.register_script(text)
    assert stamp(["py:k"], ["x", 41]) == [b"py:k", b"x", 42]
    with client.lock("py:lock", timeout=5):  # three scripts of its own
        assert client.exists("py:lock") == 1
    assert client.exists("py:lock") == 0


@step
def pubsub():
    p = client.pubsub(ignore_subscribe_messages=True)
    p.subscribe("py:news")
    p.psubscribe("py:n*")
    heard = []
    deadline = time.time() + 10
    while p.subscribed and len(heard) < 2 and time.time() < deadline:
        if not heard:
            client.publish("py:news", "hello")
        message = p.get_message(timeout=0.2)
        while message is not None:
            heard.append((message["type"], message["channel"], message["data"]))
            message = p.get_message(timeout=0.05)
    assert ("message", b"py:news", b"hello") in heard and ("pmessage", b"py:news", b"hello") in heard, heard
    p.close()


@step
def blocking():
    client.delete("py:q", "py:zq")
    popped = []
    waiter = threading.Thread(target=lambda: popped.append(redis.Redis(port=PORT).blpop(["py:none", "py:q"], 10)))
    waiter.start()
    client.rpush("py:q", "job")
    waiter.join()
    assert popped == [(b"py:q", b"job")], popped
    client.zadd("py:zq", {"member": 1.5})
    assert client.bzpopmin("py:zq", 10) == (b"py:zq", b"member", 1.5)
    assert client.brpop("py:none", 0.05) is None


@step
def scan():
    with client.pipeline(transaction=False) as p:
        for i in range(500):
            p.set("py:scan:%d" % i, i)
        p.execute()
    assert len(set(client.scan_iter(match="py:scan:*", count=50))) == 500


@step
def binary():
    client.set("py:bin", EVERY_BYTE)
    assert client.get("py:bin") == EVERY_BYTE
    client.hset("py:h", "field", EVERY_BYTE)
    assert client.hgetall("py:h") == {b"field": EVERY_BYTE}


@step
def throttle():
    client.delete("py:cell")
    assert client.execute_command("CL.THROTTLE", "py:cell", 15, 30, 60) == [0, 16, 15, -1, 2]


sys.exit(failed)
