// A read from a pipe whose writer does not exist yet.
// Shows: a blocked reader while main creates the thread that will wake it; and a writer that blocks on a full pipe.
// True:  128 KiB do not fit into a pipe of 64 KiB, so both sides block.
// expect: none
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 131072 };
static int ends[2];
static long received;

static void *read_all(void *unused) {
    static char buffer[4096];
    ssize_t got;
    while ((got = read(ends[0], buffer, sizeof buffer)) > 0)
        received += got;
    return NULL;
}

static void *write_all(void *unused) {
    static char buffer[BYTES];
    memset(buffer, 'a', sizeof buffer);
    for (ssize_t done = 0; done < BYTES;) {
        ssize_t put = write(ends[1], buffer + done, BYTES - (size_t)done);
        if (put < 0)
            break;
        done += put;
    }
    close(ends[1]);
    return NULL;
}

int main(void) {
    pthread_t reader, writer;
    if (pipe(ends) != 0)
        return 2;
    pthread_create(&reader, NULL, read_all, NULL);
    pthread_create(&writer, NULL, write_all, NULL);
    pthread_join(reader, NULL);
    pthread_join(writer, NULL);
    return received == BYTES ? 0 : 1;
}
