// An echo over a socket pair.
// Shows: send, recv, sendmsg, recvmsg and shutdown between threads.
// True:  the threads share no memory but the descriptors.
// expect: none
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int ends[2];

static void *echo(void *unused) {
    char buffer[64];
    ssize_t got;
    while ((got = recv(ends[1], buffer, sizeof buffer, 0)) > 0) {
        struct iovec part = {buffer, (size_t)got};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (sendmsg(ends[1], &message, 0) != got)
            return (void *)1;
    }
    return NULL;
}

int main(void) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return 2;
    pthread_t thread;
    pthread_create(&thread, NULL, echo, NULL);
    int failed = 0;
    for (int i = 0; i < 10; i++) {
        char sent[16] = "message ", received[16] = "";
        sent[8] = (char)('0' + i);
        if (send(ends[0], sent, sizeof sent, 0) != sizeof sent)
            return 2;
        struct iovec part = {received, sizeof received};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        failed += recvmsg(ends[0], &message, 0) != sizeof sent || memcmp(sent, received, sizeof sent) != 0;
    }
    shutdown(ends[0], SHUT_WR);
    void *result;
    pthread_join(thread, &result);
    return failed || result ? 1 : 0;
}
