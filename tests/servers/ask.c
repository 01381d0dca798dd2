// A client of a server that answers each line with one: two connections, both at work: all lines are sent before any is read.
//
// Where: $RASHOMON_SOCKET or $RASHOMON_PORT. Each argument is `1:LINE` or `2:LINE`; the answers are printed.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static FILE *connected(void) {
    const char *socket_path = getenv("RASHOMON_SOCKET"), *number = getenv("RASHOMON_PORT");
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    if (number)
        port.sin_port = htons(atoi(number));
    if (socket_path)
        strncpy(path.sun_path, socket_path, sizeof path.sun_path - 1);
    int made = socket(socket_path ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    if (connect(made, socket_path ? (void *)&path : (void *)&port, socket_path ? sizeof path : sizeof port) != 0) {
        perror("connect");
        exit(2);
    }
    FILE *connection = fdopen(made, "r+");
    setvbuf(connection, NULL, _IONBF, 0);
    return connection;
}

int main(int count, char **arguments) {
    FILE *connections[2] = {connected(), connected()};
    for (int i = 1; i < count; i++)
        fprintf(connections[arguments[i][0] - '1'], "%s\n", arguments[i] + 2);
    for (int i = 1; i < count; i++) {
        char line[100];
        if (fgets(line, sizeof line, connections[arguments[i][0] - '1']))
            printf("%c:%s", arguments[i][0], line);
    }
    return 0;
}
