// Data handed over through streams of stdio.h and calls that move data from file to file.
// Shows: bytes put and flushed by one thread, taken by another; a byte that a third thread takes from what another one read.
// True:  who takes a byte does so behind who put it there.
// expect: none
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

enum {
    FGETC, GETC_UNLOCKED, FGETS, GETLINE, FREAD, SCANF, WIDE, FPUTC, PUTC_UNLOCKED, FPUTS, FPRINTF, DPRINTF, OTHER_FLUSHES,
    CLOSED, SPLICED, COPIED, SENT_FILE, FROM_MEMORY, STANDARD, CASES
};

static int data[CASES];
static int ends[2], second_pipe[2], sockets[2], file;
static FILE *from, *to;

static void *flush(void *unused) {
    fflush(to);
    return unused;
}

static void put(int way) {
    char line[] = "1\n";
    struct iovec part = {line, 2};
    switch (way) {
    case FPUTC: fputc('1', to), fputc('\n', to), fflush(to); break;
    case PUTC_UNLOCKED: putc_unlocked('1', to), putc_unlocked('\n', to), fflush_unlocked(to); break;
    case FPUTS: fputs(line, to), fflush(to); break;
    case FPRINTF: fprintf(to, "%d\n", 1), fflush(to); break;
    case DPRINTF: dprintf(ends[1], "%d\n", 1); break;
    case OTHER_FLUSHES: {
        pthread_t other;
        fputs(line, to);
        pthread_create(&other, NULL, flush, NULL);
        pthread_join(other, NULL);
        break;
    }
    case CLOSED: fclose(to); break;
    case SENT_FILE: sendfile(sockets[0], file, NULL, 2); break;
    case FROM_MEMORY: vmsplice(ends[1], &part, 1, 0); break;
    case STANDARD: printf("%s", line), fflush(stdout); break;
    default: (void)!write(ends[1], line, 2); break;
    }
}

static void take(int way) {
    char text[8], *line = NULL;
    wchar_t wide[8];
    size_t room = 0;
    int number;
    switch (way) {
    case FGETC: fgetc(from); break;
    case GETC_UNLOCKED: getc_unlocked(from); break;
    case FGETS: (void)!fgets(text, sizeof text, from); break;
    case GETLINE: (void)!getline(&line, &room, from); break;
    case FREAD: (void)!fread(text, 2, 1, from); break;
    case SCANF: (void)!fscanf(from, "%d", &number); break;
    case WIDE: fgetws(wide, 8, from); break;
    case CLOSED: (void)!read(ends[0], text, 1); break;
    case SPLICED: splice(ends[0], NULL, second_pipe[1], NULL, 2, 0); break;
    case COPIED: tee(ends[0], second_pipe[1], 2, 0); break;
    case SENT_FILE: recv(sockets[1], text, 2, 0); break;
    default: (void)!read(ends[0], text, 2); break;
    }
    free(line);
}

static void *first(void *way) {
    data[(long)way] = 1;
    put((long)way);
    return NULL;
}

static void *second(void *way) {
    take((long)way);
    data[(long)way] += 1;
    return NULL;
}

int main(void) {
    char name[] = "/tmp/stream_hand_over_XXXXXX";
    file = mkstemp(name);
    if (unlink(name) != 0 || write(file, "1\n", 2) != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 2;
    lseek(file, 0, SEEK_SET);
    int sum = 0, standard = dup(1);
    for (long way = 0; way < CASES; way++) {
        pthread_t threads[2];
        if (pipe(ends) != 0 || pipe(second_pipe) != 0)
            return 2;
        from = fdopen(dup(ends[0]), "r");
        to = way == CLOSED ? fdopen(ends[1], "w") : fdopen(dup(ends[1]), "w");
        if (way == STANDARD)
            dup2(ends[1], 1);
        pthread_create(&threads[0], NULL, second, (void *)way);
        pthread_create(&threads[1], NULL, first, (void *)way);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        if (way == STANDARD)
            dup2(standard, 1);
        fclose(from);
        close(ends[0]);
        if (way != CLOSED) {
            fclose(to);
            close(ends[1]);
        }
        close(second_pipe[0]);
        close(second_pipe[1]);
        sum += data[way];
    }
    return sum == 2 * CASES ? 0 : 1;
}
