/* Debian's hiredis: cc hiredis.c -lhiredis. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int port, failed;
static redisContext *client;

static redisContext *dial(void) {
    redisContext *c = redisConnect("127.0.0.1", port);
    if (!c || c->err) {
        printf("not ok connect: %s\n", c ? c->errstr : "no memory");
        exit(1);
    }
    struct timeval limit = {20, 0};
    redisSetTimeout(c, limit);
    return c;
}

/* said renders a reply: the text, the number, or the elements in brackets. */
static void said(const redisReply *r, char *out, size_t room) {
    if (!r) {
        snprintf(out, room, "no reply: %s", client->errstr);
        return;
    }
    if (r->type == REDIS_REPLY_INTEGER) {
        snprintf(out, room, "%lld", r->integer);
    } else if (r->type == REDIS_REPLY_NIL) {
        snprintf(out, room, "nil");
    } else if (r->type == REDIS_REPLY_ARRAY) {
        size_t n = snprintf(out, room, "[");
        for (size_t i = 0; i < r->elements && n < room - 2; i++) {
            said(r->element[i], out + n, room - n - 2);
            n += strlen(out + n);
            if (i + 1 < r->elements) n += snprintf(out + n, room - n, " ");
        }
        snprintf(out + n, room - n, "]");
    } else {
        snprintf(out, room, "%.*s", (int)r->len, r->str);
    }
}

static int same(redisReply *r, const char *want) {
    char got[4096];
    said(r, got, sizeof got);
    if (r) freeReplyObject(r);
    if (strcmp(got, want) == 0) return 1;
    printf("want %s, got %s; ", want, got);
    return 0;
}

#define ASK(...) ((redisReply *)redisCommand(client, __VA_ARGS__))
static redisReply *next(redisContext *c) {
    void *r = NULL;
    redisGetReply(c, &r);
    return r;
}

static int connecting(void) {
    return same(ASK("PING"), "PONG") && same(ASK("SET hi:k v PX 60000"), "OK") && same(ASK("GET hi:k"), "v") &&
           same(ASK("GET hi:absent"), "nil") && same(ASK("INCR hi:k"), "ERR value is not an integer or out of range");
}

static int pipelining(void) {
    int good = same(ASK("SET hi:n 0"), "OK");
    for (int i = 0; i < 1000; i++) redisAppendCommand(client, "INCR hi:n");
    for (int i = 0; i < 999; i++) freeReplyObject(next(client));
    return good && same(next(client), "1000");
}

static int transaction(void) {
    return same(ASK("DEL hi:w"), "0") && same(ASK("MULTI"), "OK") && same(ASK("ZADD hi:w 1 a 2 b"), "QUEUED") &&
           same(ASK("ZREMRANGEBYSCORE hi:w 0 1"), "QUEUED") && same(ASK("ZCARD hi:w"), "QUEUED") && same(ASK("EXEC"), "[2 1 1]") &&
           same(ASK("DEL hi:w"), "1");
}

static int watching(void) {
    redisContext *other = dial();
    int good = same(ASK("WATCH hi:watched"), "OK") && same(redisCommand(other, "SET hi:watched changed"), "OK") &&
               same(ASK("MULTI"), "OK") && same(ASK("SET hi:watched mine"), "QUEUED") && same(ASK("EXEC"), "nil") &&
               same(ASK("GET hi:watched"), "changed");
    redisFree(other);
    return good;
}

static int scripting(void) {
    char text[100];
    snprintf(text, sizeof text, "return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1} -- %d", getpid());
    return same(ASK("EVALSHA 0000000000000000000000000000000000000000 0"), "NOSCRIPT No matching script. Please use EVAL.") &&
           same(ASK("EVAL %s 1 hi:k x 41", text), "[hi:k x 42]");
}

static int pubsub(void) {
    redisContext *subscriber = dial();
    int good = same(redisCommand(subscriber, "SUBSCRIBE hi:news"), "[subscribe hi:news 1]") && same(ASK("PUBLISH hi:news hello"), "1") &&
               same(next(subscriber), "[message hi:news hello]") &&
               same(redisCommand(subscriber, "UNSUBSCRIBE hi:news"), "[unsubscribe hi:news 0]");
    redisFree(subscriber);
    return good;
}

static int blocking(void) {
    redisContext *waiter = dial();
    int good = same(ASK("DEL hi:q hi:zq"), "0");
    redisAppendCommand(waiter, "BLPOP hi:none hi:q 10");
    for (int done = 0; !done;) redisBufferWrite(waiter, &done);
    good = good && same(ASK("RPUSH hi:q job"), "1") && same(next(waiter), "[hi:q job]") && same(ASK("ZADD hi:zq 1.5 member"), "1") &&
           same(ASK("BZPOPMIN hi:zq 10"), "[hi:zq member 1.5]") && same(ASK("BRPOP hi:none 0.05"), "nil");
    redisFree(waiter);
    return good;
}

static int scanning(void) {
    for (int i = 0; i < 500; i++) redisAppendCommand(client, "SET hi:scan:%d x", i);
    for (int i = 0; i < 500; i++) freeReplyObject(next(client));
    char cursor[32] = "0";
    size_t found = 0;
    do { /* nothing changes meanwhile, so no name comes twice */
        redisReply *r = ASK("SCAN %s MATCH hi:scan:* COUNT 50", cursor);
        if (!r || r->type != REDIS_REPLY_ARRAY) return same(r, "a page");
        snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
        found += r->element[1]->elements;
        freeReplyObject(r);
    } while (strcmp(cursor, "0") != 0);
    if (found == 500) return 1;
    printf("found %zu; ", found);
    return 0;
}

static int binary(void) {
    unsigned char every[256];
    for (int i = 0; i < 256; i++) every[i] = i;
    int good = same(ASK("SET hi:bin %b", every, sizeof every), "OK");
    redisReply *r = ASK("GET hi:bin");
    good = good && r && r->len == sizeof every && memcmp(r->str, every, sizeof every) == 0;
    freeReplyObject(r);
    return good;
}

static int throttle(void) { return same(ASK("DEL hi:cell"), "0") && same(ASK("CL.THROTTLE hi:cell 15 30 60"), "[0 16 15 -1 2]"); }

static void step(const char *name, int (*run)(void)) {
    if (run()) {
        printf("ok %s\n", name);
    } else {
        failed = 1;
        printf("\nnot ok %s\n", name);
    }
    fflush(stdout);
}

int main(void) {
    port = atoi(getenv("HEADGATE_PORT"));
    client = dial();
    step("connect", connecting);
    step("pipeline", pipelining);
    step("transaction", transaction);
    step("watch", watching);
    step("script", scripting);
    step("pubsub", pubsub);
    step("blocking", blocking);
    step("scan", scanning);
    step("binary", binary);
    step("throttle", throttle);
    redisFree(client);
    return failed;
}
