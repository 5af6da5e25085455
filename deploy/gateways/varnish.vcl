# Varnish asks headgate in Redis's protocol, with libvmod-redis (Debian: varnish-redis). Answers from the cache count, too.
vcl 4.1;

import redis;

backend default {
    .host = "127.0.0.1";
    .port = "8000";
}

sub vcl_init {
    # For a headgate with a password, two more arguments: user="edge", password="secret".
    new headgate = redis.db(location="127.0.0.1:6379", type=master, connection_timeout=200, command_timeout=200);
}

sub vcl_recv {
    # A smooth rate: 100 an hour, and 100 at once. Without an answer requests pass.
    headgate.command("CL.THROTTLE");
    headgate.push("ip:" + client.ip);
    headgate.push("99");
    headgate.push("100");
    headgate.push("3600");
    headgate.execute();
    if (headgate.reply_is_array() && headgate.get_array_reply_value(0) == "1") {
        set req.http.Retry-After = headgate.get_array_reply_value(3);
        return (synth(429));
    }
}

sub vcl_synth {
    if (resp.status == 429) {
        set resp.http.Retry-After = req.http.Retry-After;
    }
}
