// Two readers of one table, each with its own connection, count the rows in one variable.
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>

static int rows;

static int count(void *unused, int columns, char **values, char **names) {
    (void)unused, (void)columns, (void)values, (void)names;
    rows++;
    return 0;
}

static void *reader(void *database) {
    sqlite3_exec(database, "SELECT name FROM birds WHERE legs = 2", count, NULL, NULL);
    return NULL;
}

int main(void) {
    sqlite3 *connections[2];
    pthread_t readers[2];
    for (int i = 0; i < 2; i++) {
        sqlite3_open(":memory:", &connections[i]);
        sqlite3_exec(connections[i], "CREATE TABLE birds(name TEXT, legs INT)", NULL, NULL, NULL);
        sqlite3_exec(connections[i], "INSERT INTO birds VALUES('wren', 2), ('rook', 2)", NULL, NULL, NULL);
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&readers[i], NULL, reader, connections[i]);
    for (int i = 0; i < 2; i++) {
        pthread_join(readers[i], NULL);
        sqlite3_close(connections[i]);
    }
    printf("%d rows\n", rows);
    return 0;
}
