// Threads that write to one database through connections of their own, and one connection that all share.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

static const char *file;
static int rounds;
static sqlite3 *shared;

static void execute(sqlite3 *to, const char *text) {
    char *error = NULL;
    int code;
    while ((code = sqlite3_exec(to, text, NULL, NULL, &error)) == SQLITE_BUSY || code == SQLITE_LOCKED)
        sqlite3_sleep(1);
    if (code != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", text, error);
        exit(1);
    }
}

static sqlite3 *opened(void) {
    sqlite3 *connection;
    if (sqlite3_open(file, &connection) != SQLITE_OK)
        exit(1);
    sqlite3_busy_timeout(connection, 60000);
    return connection;
}

static void *work(void *argument) {
    int number = (int)(long)argument;
    sqlite3 *own = opened();
    char text[200];
    for (int i = 0; i < rounds; i++) {
        snprintf(text, sizeof text, "insert into entries values (%d, %d, hex(randomblob(20)))", number, i);
        execute(i % 2 ? shared : own, text);
        if (i % 8 == 0)
            execute(own, "select count(*), max(length(content)) from entries where author % 2 = 0");
    }
    sqlite3_close(own);
    return NULL;
}

static int show(void *to, int count, char **values, char **names) {
    for (int i = 0; i < count; i++)
        fprintf(to, "%s%s", values[i], i + 1 < count ? " " : "\n");
    return 0;
}

int main(int count, char **arguments) {
    file = arguments[1];
    int threads = atoi(arguments[2]);
    rounds = atoi(arguments[3]);
    pthread_t all[16];
    shared = opened();
    execute(shared, "pragma journal_mode = wal");
    execute(shared, "create table entries (author integer, number integer, content text)");
    for (long i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    FILE *output = fopen("output", "w");
    sqlite3_exec(shared,
                 "select author, count(*), sum(number), sum(length(content)) from entries group by author",
                 show, output, NULL);
    sqlite3_exec(shared, "pragma integrity_check", show, output, NULL);
    fclose(output);
    sqlite3_close(shared);
    return 0;
}
