// A client whose threads ask a server without pause, until its main thread has slept: one byte, one byte back.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int port, over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_over(void) {
    pthread_mutex_lock(&lock);
    int seen = over;
    pthread_mutex_unlock(&lock);
    return seen;
}

static void *asks(void *unused) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int made = socket(AF_INET, SOCK_STREAM, 0);
    char byte = '?';
    if (connect(made, (void *)&server, sizeof server) != 0)
        exit(3);
    while (!is_over())
        if (write(made, &byte, 1) != 1 || read(made, &byte, 1) != 1)
            exit(4);
    close(made);
    return unused;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    port = count > 1 ? atoi(arguments[1]) : 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, asks, NULL);
    usleep(200000);
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts("over");
    return 0;
}
