// Threads that read and write one database, each by a connection of its own: one insertion to seven look-ups. Prints what the
// evaluation of servers reads: operations, seconds, milliseconds of the 99th percentile, and whether every row is there.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "sqlite3.h"

#define MOST_THREADS 16

static const char *file;
static int threads, operations;
static double *latencies;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static void need(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "sqlite_load: %s\n", what);
    exit(1);
}

static sqlite3 *opened(void) {
    sqlite3 *connection;
    need(sqlite3_open(file, &connection) == SQLITE_OK, "cannot open the database");
    sqlite3_busy_timeout(connection, 60000);
    need(sqlite3_exec(connection, "pragma synchronous = off", 0, 0, 0) == SQLITE_OK, "pragma");
    return connection;
}

static void *work(void *argument) {
    int number = (int)(long)argument, rows = 0;
    sqlite3 *own = opened();
    sqlite3_stmt *insert, *find;
    need(sqlite3_prepare_v2(own, "insert into entries values (?, ?, ?)", -1, &insert, 0) == SQLITE_OK, "insert");
    need(sqlite3_prepare_v2(own, "select content from entries where key = ?", -1, &find, 0) == SQLITE_OK, "select");
    for (int nth = 0; nth < operations; nth++) {
        double begin = now();
        char content[200];
        if (nth % 8 == 0) {
            snprintf(content, sizeof content, "of thread %d, row %d", number, rows);
            sqlite3_bind_int(insert, 1, number * 1000000 + rows);
            sqlite3_bind_int(insert, 2, number);
            sqlite3_bind_text(insert, 3, content, -1, SQLITE_TRANSIENT);
            need(sqlite3_step(insert) == SQLITE_DONE, sqlite3_errmsg(own));
            sqlite3_reset(insert);
            rows++;
        } else {
            int row = (int)((unsigned)nth * 2654435761u % (unsigned)rows);
            snprintf(content, sizeof content, "of thread %d, row %d", number, row);
            sqlite3_bind_int(find, 1, number * 1000000 + row);
            need(sqlite3_step(find) == SQLITE_ROW, "a row is missing");
            need(__builtin_strcmp((const char *)sqlite3_column_text(find, 0), content) == 0, "another content");
            sqlite3_reset(find);
        }
        latencies[number * operations + nth] = now() - begin;
    }
    sqlite3_finalize(insert);
    sqlite3_finalize(find);
    sqlite3_close(own);
    return 0;
}

static int by_size(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return difference < 0 ? -1 : difference > 0;
}

int main(int count, char **arguments) {
    need(count == 4, "database, threads, operations of each");
    file = arguments[1];
    threads = atoi(arguments[2]);
    operations = atoi(arguments[3]);
    need(threads > 0 && threads <= MOST_THREADS && operations > 0, "what numbers are these");
    int all = threads * operations;
    latencies = malloc(sizeof *latencies * (size_t)all);
    pthread_t ids[MOST_THREADS];
    sqlite3 *first = opened();
    need(sqlite3_exec(first, "pragma journal_mode = wal", 0, 0, 0) == SQLITE_OK, "journal");
    const char *table = "create table entries (key integer primary key, author integer, content text)";
    need(sqlite3_exec(first, table, 0, 0, 0) == SQLITE_OK, "table");
    double begin = now();
    for (long nth = 0; nth < threads; nth++) need(pthread_create(&ids[nth], 0, work, (void *)nth) == 0, "thread");
    for (int nth = 0; nth < threads; nth++) pthread_join(ids[nth], 0);
    double seconds = (now() - begin) / 1e3;
    sqlite3_stmt *rows;
    need(sqlite3_prepare_v2(first, "select count(*) from entries", -1, &rows, 0) == SQLITE_OK, "count");
    need(sqlite3_step(rows) == SQLITE_ROW, "count");
    need(sqlite3_column_int(rows, 0) == threads * ((operations + 7) / 8), "rows are missing");
    qsort(latencies, (size_t)all, sizeof *latencies, by_size);
    printf("operations %d\nseconds %.6f\np99 %.6f\n", all, seconds, latencies[(int)(all * 0.99)]);
    sqlite3_finalize(rows);
    sqlite3_close(first);
    return 0;
}
