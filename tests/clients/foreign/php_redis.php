<?php
// Debian's php-redis, with its defaults.
$port = (int) getenv('HEADGATE_PORT');
$everyByte = implode('', array_map('chr', range(0, 255)));
$failed = false;

function open(): Redis
{
    global $port;
    $client = new Redis();
    $client->connect('127.0.0.1', $port);
    return $client;
}

function step(string $name, callable $run): void
{
    global $failed;
    try {
        $run();
        echo "ok $name\n";
    } catch (Throwable $err) {
        $failed = true;
        echo "not ok $name: {$err->getMessage()} line {$err->getLine()}\n";
    }
}

function same($want, $got): void
{
    if ($want !== $got) {
        throw new Exception('want ' . var_export($want, true) . ', got ' . var_export($got, true));
    }
}

$redis = open();

step('connect', function () use ($redis) {
    same(true, $redis->ping());
    same(true, $redis->set('php:k', 'v', ['px' => 60000]));
    same('v', $redis->get('php:k'));
    same(false, $redis->get('php:absent'));
    same(false, $redis->incr('php:k'));
    same('ERR value is not an integer or out of range', rtrim($redis->getLastError(), "\0"));
});

step('pipeline', function () use ($redis) {
    $redis->del('php:n');
    $pipe = $redis->pipeline();
    for ($i = 0; $i < 1000; $i++) {
        $pipe->incr('php:n');
    }
    $replies = $pipe->exec();
    same(1000, end($replies));
});

step('transaction', function () use ($redis) {
    $now = (int) (microtime(true) * 1000);
    $replies = $redis->multi()->del('php:w')->zAdd('php:w', $now, 'a', $now + 1, 'b')->zRemRangeByScore('php:w', 0, $now)
        ->zCard('php:w')->pExpire('php:w', 1000)->exec();
    same([0, 2, 1, 1, true], $replies);
});

step('watch', function () use ($redis) {
    $redis->watch('php:watched');
    open()->set('php:watched', 'changed');
    same(false, $redis->multi()->set('php:watched', 'mine')->exec());
    same('changed', $redis->get('php:watched'));
});

step('script', function () use ($redis) {
    $text = 'return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1} -- ' . getmypid() . microtime();
    same(false, $redis->evalSha(sha1($text), ['php:k', 'x', 41], 1));
    same('NOSCRIPT No matching script. Please use EVAL.', rtrim($redis->getLastError(), "\0"));
    $redis->clearLastError();
    same(['php:k', 'x', 42], $redis->eval($text, ['php:k', 'x', 41], 1));
    same(['php:k', 'y', 2], $redis->evalSha(sha1($text), ['php:k', 'y', 1], 1));
    same([1], $redis->script('exists', sha1($text)));
});

step('pubsub', function () use ($redis) {
    // subscribe() blocks this process, so another one publishes.
    $port = getenv('HEADGATE_PORT');
    $publish = '$r = new Redis(); $r->connect("127.0.0.1", ' . $port . '); $end = microtime(true) + 10;'
        . 'while ($r->publish("php:news", "hello") < 1 && microtime(true) < $end) { usleep(5000); }';
    $process = proc_open([PHP_BINARY, '-r', $publish], [], $pipes);
    $heard = null;
    try {
        open()->subscribe(['php:news'], function ($client, $channel, $text) use (&$heard) {
            $heard = [$channel, $text];
            $client->close(); // the one way out of subscribe()
        });
    } catch (RedisException $err) {
        if ($heard === null) {
            throw $err;
        }
    } finally {
        proc_close($process);
    }
    same(['php:news', 'hello'], $heard);
});

step('blocking', function () use ($redis) {
    $redis->del('php:q', 'php:zq');
    $port = getenv('HEADGATE_PORT');
    $push = 'usleep(50000); $r = new Redis(); $r->connect("127.0.0.1", ' . $port . '); $r->rPush("php:q", "job");';
    $process = proc_open([PHP_BINARY, '-r', $push], [], $pipes);
    $popped = $redis->blPop(['php:none', 'php:q'], 10);
    proc_close($process);
    same(['php:q', 'job'], $popped);
    $redis->zAdd('php:zq', 1.5, 'member');
    same(['php:zq', 'member', '1.5'], array_map('strval', $redis->bzPopMin('php:zq', 10)));
    same([], $redis->brPop('php:none', 1));
});

step('scan', function () use ($redis) {
    for ($i = 0; $i < 500; $i++) {
        $redis->set("php:scan:$i", $i);
    }
    $names = [];
    $cursor = null;
    $redis->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
    while ($found = $redis->scan($cursor, 'php:scan:*', 50)) {
        foreach ($found as $name) {
            $names[$name] = true;
        }
    }
    same(500, count($names));
});

step('binary', function () use ($redis, $everyByte) {
    $redis->set('php:bin', $everyByte);
    same($everyByte, $redis->get('php:bin'));
    $redis->hSet('php:h', 'field', $everyByte);
    same(['field' => $everyByte], $redis->hGetAll('php:h'));
});

step('throttle', function () use ($redis) {
    $redis->del('php:cell');
    same([0, 16, 15, -1, 2], $redis->rawCommand('CL.THROTTLE', 'php:cell', 15, 30, 60));
});

exit($failed ? 1 : 0);
