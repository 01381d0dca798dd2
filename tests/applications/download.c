// A file is downloaded in parts by threads of their own, from a server that is a thread of this program.
// Seeded race: the progress of all parts is counted without the lock.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PARTS = 4, PART = 32768, PIECE = 256 };
#ifndef SEEDED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif
static struct sockaddr_in address;
static char file[PARTS * PART];
static int listener, progress;

static void *serve(void *unused) {
    for (int i = 0; i < PARTS; i++) {
        int client = accept(listener, NULL, NULL);
        int part;
        char piece[PIECE];
        if (client < 0 || read(client, &part, sizeof part) != sizeof part) return NULL;
        memset(piece, 'a' + part, sizeof piece);
        for (int sent = 0; sent < PART; sent += PIECE)
            if (write(client, piece, sizeof piece) != sizeof piece) return NULL;
        close(client);
    }
    return unused;
}

static void *download(void *argument) {
    int part = *(int *)argument, got = 0;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address) || write(server, &part, sizeof part) < 0) return NULL;
    while (got < PART) {
        ssize_t more = read(server, &file[part * PART + got], PIECE);
        if (more <= 0) break;
        got += more;
#ifdef SEEDED
        progress += more;
#else
        pthread_mutex_lock(&lock);
        progress += more;
        pthread_mutex_unlock(&lock);
#endif
    }
    close(server);
    return NULL;
}

int main(void) {
    pthread_t server, threads[PARTS];
    int numbers[PARTS];
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, PARTS)) return 2;
    getsockname(listener, (struct sockaddr *)&address, &length);
    pthread_create(&server, NULL, serve, NULL);
    for (int i = 0; i < PARTS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, download, &numbers[i]);
    }
    for (int i = 0; i < PARTS; i++) pthread_join(threads[i], NULL);
    pthread_join(server, NULL);
    printf("%d bytes, the last is %c\n", progress, file[PARTS * PART - 1]);
    return 0;
}
