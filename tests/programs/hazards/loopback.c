// A connection over the loopback interface.
// Shows: accept and connect that block until the other thread has come; a port the kernel chooses.
// True:  the server answers each byte with its successor.
// expect: none
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener;

static void *serve(void *unused) {
    int connection = accept(listener, NULL, NULL);
    char byte;
    while (recv(connection, &byte, 1, 0) == 1) {
        byte++;
        if (send(connection, &byte, 1, 0) != 1)
            break;
    }
    close(connection);
    return NULL;
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0)
        return 2;
    getsockname(listener, (struct sockaddr *)&address, &length);
    pthread_t thread;
    pthread_create(&thread, NULL, serve, NULL);
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, length) != 0)
        return 2;
    int failed = 0;
    for (char c = 'a'; c < 'f'; c++) {
        char answer = 0;
        if (send(connection, &c, 1, 0) != 1 || recv(connection, &answer, 1, 0) != 1)
            return 2;
        failed += answer != c + 1;
    }
    close(connection);
    pthread_join(thread, NULL);
    close(listener);
    return failed ? 1 : 0;
}
