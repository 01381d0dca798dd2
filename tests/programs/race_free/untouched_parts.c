// What functions of the C library leave alone of the objects that they are given.
// Shows: accesses that are told of calls which do not make them.
// True:  no race. The other thread writes what the calls neither read nor write, and reads what they do not write.
// expect: none
#define _GNU_SOURCE
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static sigset_t empty, full;
static char *end;
static int number;
static wchar_t wide[4];
static FILE *lines;
static char line_text[64], *line = line_text;
static size_t line_bytes = sizeof line_text;
static regex_t pattern;
static regmatch_t matches[2];
static struct tm date;
static struct timespec left_of_invalid, left_of_absolute;
static char name[] = "/tmp/untouched-parts-XXXXXX";
static int wrong_base = 1;
static volatile size_t seen;

static void *writes(void *unused) {
    ((char *)&empty)[64] = 1;
    ((char *)&full)[64] = 1;
    number = 1;
    wide[2] = L'x';
    matches[0].rm_so = 1;
    date.tm_year = 1;
    left_of_invalid.tv_sec = 1;
    left_of_absolute.tv_sec = 1;
    // The calls read these.
    seen = line_bytes + name[1] + (line == line_text);
    return NULL;
}

int main(void) {
    end = (char *)&number;
    lines = fmemopen("one line", 8, "r");
    // At the end of the file, nothing is read.
    while (getc(lines) != EOF) {}
    regcomp(&pattern, "a.*b", REG_NOSUB);
    pthread_t thread;
    pthread_create(&thread, NULL, writes, NULL);

    sigemptyset(&empty);
    sigfillset(&full);
    char *stop = end;
    strtol("12", &stop, wrong_base);
    const char *source = "abc";
    mbstate_t state = {0};
    mbsnrtowcs(wide, &source, 2, 4, &state);
    getline(&line, &line_bytes, lines);
    regexec(&pattern, "axb", 2, matches, 0);
    strptime("12:30", "%H:%M", &date);
    nanosleep(&(struct timespec){0, 2000000000}, &left_of_invalid);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){0, 1}, &left_of_absolute);
    int file = mkstemp(name);
    unlink(name);
    close(file);

    pthread_join(thread, NULL);
    regfree(&pattern);
    fclose(lines);
    return 0;
}
