// A server with one thread for each connection: accounts, each with a lock. Its races and its deadlock need two clients.
//
// Arguments: a port (0: any), or the path of a local socket; `end` behind it: only the command `shutdown` ends it, not SIGTERM.
// Commands, a line each: `add ACCOUNT AMOUNT`, `move FROM TO AMOUNT`, `sum`, `shutdown`.
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ACCOUNTS = 4 };
static struct {
    pthread_mutex_t lock;
    long balance;
} accounts[ACCOUNTS];
static long requests;

static void add(int account, long amount) {
    pthread_mutex_lock(&accounts[account].lock);
    accounts[account].balance += amount;
    pthread_mutex_unlock(&accounts[account].lock);
}

static void transfer(int from, int to, long amount) {
    if (from == to)
        return;
    pthread_mutex_lock(&accounts[from].lock);
    pthread_mutex_lock(&accounts[to].lock); // deadlock
    accounts[from].balance -= amount;
    accounts[to].balance += amount;
    pthread_mutex_unlock(&accounts[to].lock);
    pthread_mutex_unlock(&accounts[from].lock);
}

static long sum(void) {
    long total = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_lock(&accounts[i].lock);
        total += accounts[i].balance;
        pthread_mutex_unlock(&accounts[i].lock);
    }
    return total;
}

static void answer(FILE *connection, char *line) {
    int from, to;
    long amount;
    requests++; // race
    if (sscanf(line, "add %d %ld", &to, &amount) == 2) {
        add(to % ACCOUNTS, amount);
    } else if (sscanf(line, "move %d %d %ld", &from, &to, &amount) == 3) {
        transfer(from % ACCOUNTS, to % ACCOUNTS, amount);
    } else if (strncmp(line, "sum", 3) == 0) {
        fprintf(connection, "%ld\n", sum());
        return;
    } else if (strncmp(line, "shutdown", 8) == 0) {
        exit(7);
    }
    fprintf(connection, "done\n");
}

static void *serve(void *argument) {
    FILE *connection = fdopen((int)(long)argument, "r+");
    setvbuf(connection, NULL, _IONBF, 0);
    char line[100];
    while (fgets(line, sizeof line, connection))
        answer(connection, line);
    fclose(connection);
    return NULL;
}

static int listening(const char *where) {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(atoi(where)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int local = strchr(where, '/') != NULL;
    strncpy(path.sun_path, where, sizeof path.sun_path - 1);
    int made = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (local)
        unlink(where);
    if (bind(made, local ? (void *)&path : (void *)&port, local ? sizeof path : sizeof port) != 0 || listen(made, 8) != 0) {
        perror(where);
        exit(2);
    }
    return made;
}

int main(int count, char **arguments) {
    if (count > 2)
        signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < ACCOUNTS; i++)
        pthread_mutex_init(&accounts[i].lock, NULL);
    int at = listening(arguments[1]);
    for (;;) {
        int connection = accept(at, NULL, NULL);
        pthread_t thread;
        if (connection < 0)
            continue;
        pthread_create(&thread, NULL, serve, (void *)(long)connection);
        pthread_detach(thread);
    }
}
