// Library functions that exist in several symbol versions.
// Shows: calls that must reach the default version, not the oldest one.
// True:  every call has a known result.
// expect: none
#define _GNU_SOURCE
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void *work(void *unused) {
    char *path = realpath("/", NULL);
    int failed = path == NULL || strcmp(path, "/") != 0;
    free(path);

    regex_t pattern;
    regmatch_t match[1];
    failed += regcomp(&pattern, "b+", REG_EXTENDED) != 0;
    failed += regexec(&pattern, "aabbb", 1, match, 0) != 0 || match[0].rm_so != 2 || match[0].rm_eo != 5;
    regfree(&pattern);

    glob_t found;
    failed += glob("/*", 0, NULL, &found) != 0 || found.gl_pathc == 0;
    globfree(&found);

    char text[] = "12 34";
    int first = 0, second = 0;
    FILE *file = fmemopen(text, sizeof text, "r");
    failed += file == NULL || fscanf(file, "%d %d", &first, &second) != 2 || first + second != 46;
    if (file != NULL)
        fclose(file);

    cpu_set_t cpus;
    pthread_attr_t attributes;
    failed += sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) == 0;
    pthread_attr_init(&attributes);
    failed += pthread_attr_getaffinity_np(&attributes, sizeof cpus, &cpus) != 0;
    pthread_attr_destroy(&attributes);

    failed += fabs(lgamma(5) - log(24)) > 1e-9;
    failed += pthread_kill(pthread_self(), 0) != 0;

    pid_t child;
    char *arguments[] = {"true", NULL}, *environment[] = {NULL};
    int status = -1;
    failed += posix_spawnp(&child, "true", NULL, NULL, arguments, environment) != 0;
    waitpid(child, &status, 0);
    failed += status != 0;
    return failed ? (void *)1 : NULL;
}

int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, &result);
    return result == NULL ? 0 : 1;
}
