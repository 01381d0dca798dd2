// Connections that work at the same time: each counts one number up that all share, and sets and reads its own.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int port, rounds;

static FILE *connected(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int made = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(made, (void *)&to, sizeof to) != 0) {
        perror("connect");
        exit(2);
    }
    FILE *connection = fdopen(made, "r+");
    setvbuf(connection, NULL, _IONBF, 0);
    return connection;
}

static char *answer(FILE *connection, char *line, const char *request) {
    fputs(request, connection);
    if (!fgets(line, 200, connection))
        exit(3);
    return line;
}

static void *work(void *argument) {
    FILE *connection = connected();
    char line[200], request[200];
    for (int i = 0; i < rounds; i++) {
        answer(connection, line, "incr all 1\r\n");
        snprintf(request, sizeof request, "set own%ld 0 0 6\r\n%06d\r\n", (long)argument, i);
        if (strncmp(answer(connection, line, request), "STORED", 6) != 0)
            exit(4);
        snprintf(request, sizeof request, "get own%ld\r\n", (long)argument);
        answer(connection, line, request);
        if (!fgets(line, sizeof line, connection) || atoi(line) != i || !fgets(line, sizeof line, connection))
            exit(5);
    }
    fclose(connection);
    return NULL;
}

int main(int count, char **arguments) {
    port = atoi(arguments[1]);
    int threads = atoi(arguments[2]);
    rounds = atoi(arguments[3]);
    pthread_t all[16];
    char line[200];
    FILE *connection = connected();
    answer(connection, line, "set all 0 0 1\r\n0\r\n");
    for (long i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    answer(connection, line, "incr all 1\r\n");
    printf("%s", line);
    return 0;
}
