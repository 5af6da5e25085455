/*
 * The floor: what a server over epoll, recv and send costs that understands nothing. It answers each '*' that it receives with one
 * constant reply, of the size of the real one. Run it in headgate's place in a comparison to learn how much of a figure is the
 * kernel's: no server on these system calls can be cheaper.
 *
 *     cc -O2 -o floor floor.c && ./floor --port 7000 --unixsocket floor.sock
 *
 * The loads it knows are PING (+PONG) and CL.THROTTLE (five integers); everything else is answered with +OK.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { events = 256, room = 64 << 10, looked_at = 40 };

struct answer {
    int fd, count;
    const char *text;
};

static int listen_on(int port) {
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 511)) exit(1);
    return fd;
}

static int listen_unix(const char *path) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    strncpy(addr.sun_path, path, sizeof addr.sun_path - 1);
    unlink(path);
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 511)) exit(1);
    return fd;
}

static void watch(int epoll, int fd, unsigned what) {
    struct epoll_event e = {.events = what, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

/* received reads once and says what is to be answered. */
static struct answer received(int fd) {
    static char in[room];
    struct answer a = {.fd = fd, .text = "+OK\r\n"};
    ssize_t n = recv(fd, in, sizeof in, 0);
    if (n <= 0) {
        if (n == 0) close(fd);
        return a;
    }
    size_t begin = n < looked_at ? n : looked_at;
    if (memmem(in, begin, "PING", 4)) a.text = "+PONG\r\n";
    if (memmem(in, begin, "THROTTLE", 8)) a.text = "*5\r\n:0\r\n:1001\r\n:1000\r\n:-1\r\n:1\r\n";
    for (char *p = in; (p = memchr(p, '*', in + n - p)); p++) a.count++;
    return a;
}

static void answer(struct answer a) {
    static char out[room];
    size_t size = strlen(a.text), n = 0;
    for (int i = 0; i < a.count && n + size <= sizeof out; i++, n += size) memcpy(out + n, a.text, size);
    if (n > 0) send(a.fd, out, n, MSG_NOSIGNAL);
}

int main(int argc, char **argv) {
    int port = 6379, local = -1, on = 1;
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--port")) port = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--unixsocket")) local = listen_unix(argv[i + 1]);
    }
    int listener = listen_on(port), epoll = epoll_create1(0);
    watch(epoll, listener, EPOLLIN);
    if (local >= 0) watch(epoll, local, EPOLLIN);
    struct epoll_event ready[events];
    struct answer due[events];
    for (;;) {
        int n = epoll_wait(epoll, ready, events, 0), answers = 0;
        if (n == 0) n = epoll_wait(epoll, ready, events, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd != listener && ready[i].data.fd != local) {
                due[answers++] = received(ready[i].data.fd);
                continue;
            }
            int fd = accept4(ready[i].data.fd, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            watch(epoll, fd, EPOLLIN | EPOLLET | EPOLLRDHUP);
        }
        for (int i = 0; i < answers; i++) answer(due[i]);
    }
}
