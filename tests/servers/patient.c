// A server that looks for its client ten times a second and sleeps in between, and says how often it looked.
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int made = socket(AF_INET, SOCK_STREAM, 0), looks = 0;
    bind(made, (void *)&any, sizeof any);
    listen(made, 8);
    fcntl(made, F_SETFL, O_NONBLOCK);
    while (accept(made, NULL, NULL) < 0) {
        looks++;
        usleep(100000);
    }
    printf("%d\n", looks);
    return 0;
}
