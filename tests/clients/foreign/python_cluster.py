"""Debian's python3-redis in cluster mode."""
import os
import sys
import threading

from redis.cluster import RedisCluster

PORT = int(os.environ["HEADGATE_PORT"])
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
    client = RedisCluster(host="127.0.0.1", port=PORT)
    for i in range(200):
        assert client.set("pyc:%d" % i, i, px=60_000)
    assert client.get("pyc:199") == b"199"
    assert len(client.get_primaries()) == 1


@step
def pipeline():
    client = RedisCluster(host="127.0.0.1", port=PORT)
    with client.pipeline() as p:
        for _ in range(1000):
            p.incr("{pyc}n")
        assert p.execute()[-1] == 1000


@step
def script():
    client = RedisCluster(host="127.0.0.1", port=PORT)
    assert client.eval("return {KEYS[1], ARGV[1]}", 1, "pyc:k", "x") == [b"pyc:k", b"x"]


@step
def limiter():
    admitted = []

    def work():
        client = RedisCluster(host="127.0.0.1", port=PORT)
        for _ in range(50):
            if client.execute_command("RL.GCRA", "pyc:user", 20, 1, "1d")[0] == 0:
                admitted.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(admitted) == 20, len(admitted)


sys.exit(failed)
