// Input and output that block halfway, elsewhere, or not at all.
// Shows: send, sendmsg and writev of more than a buffer holds, a FIFO whose opening waits, O_NONBLOCK and SO_RCVTIMEO.
// True:  the bytes received are written by the reader and compared by it; main touches nothing of it before it has joined.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE = 300000, FIRST = 100000 };

static int sockets[2], ends[2];
static char sent[SIZE], received[SIZE];
static char folder[] = P_tmpdir "/transfers-XXXXXX";
static char fifo[sizeof folder + 8];

static void *receive_all(void *descriptor) {
    size_t length = 0;
    memset(received, 0, SIZE);
    while (length < SIZE) {
        ssize_t more = read(*(int *)descriptor, received + length, SIZE - length);
        if (more <= 0)
            break;
        length += more;
    }
    return length == SIZE && memcmp(sent, received, SIZE) == 0 ? NULL : (void *)1;
}

static void *write_to_fifo(void *unused) {
    int descriptor = open(fifo, O_WRONLY);
    ssize_t length = write(descriptor, "k", 1);
    close(descriptor);
    return length == 1 ? NULL : (void *)1;
}

static void *read_when_ready(void *unused) {
    char byte;
    ssize_t length;
    while ((length = read(ends[0], &byte, 1)) < 0 && errno == EAGAIN)
        sched_yield();
    return length == 1 ? NULL : (void *)1;
}

static int succeeds(pthread_t thread) {
    void *result;
    return pthread_join(thread, &result) == 0 && result == NULL;
}

static int large(void) {
    pthread_t thread;
    struct iovec parts[2] = {{sent, FIRST}, {sent + FIRST, SIZE - FIRST}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    pthread_create(&thread, NULL, receive_all, &sockets[0]);
    if (send(sockets[1], sent, SIZE, 0) != SIZE || !succeeds(thread))
        return 1;
    pthread_create(&thread, NULL, receive_all, &sockets[0]);
    if (sendmsg(sockets[1], &message, 0) != SIZE || !succeeds(thread))
        return 2;
    pthread_create(&thread, NULL, receive_all, &ends[0]);
    return writev(ends[1], parts, 2) == SIZE && succeeds(thread) ? 0 : 3;
}

static int named(void) {
    pthread_t thread;
    char byte;
    if (mkdtemp(folder) == NULL)
        return 4;
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    if (mkfifo(fifo, 0600) != 0)
        return 5;
    pthread_create(&thread, NULL, write_to_fifo, NULL);
    int descriptor = open(fifo, O_RDONLY);
    int whole = read(descriptor, &byte, 1) == 1 && byte == 'k' && read(descriptor, &byte, 1) == 0;
    close(descriptor);
    unlink(fifo);
    rmdir(folder);
    return succeeds(thread) && whole ? 0 : 6;
}

static int impatient(void) {
    pthread_t thread;
    char byte;
    struct timeval soon = {0, 20000};
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) != 0)
        return 7;
    pthread_create(&thread, NULL, read_when_ready, NULL);
    if (recv(sockets[0], &byte, 1, 0) != -1 || errno != EAGAIN)
        return 8;
    return write(ends[1], "z", 1) == 1 && succeeds(thread) ? 0 : 9;
}

int main(void) {
    for (int i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 7);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 || pipe(ends) != 0)
        return 10;
    int failed = large();
    if (failed == 0)
        failed = named();
    return failed != 0 ? failed : impatient();
}
