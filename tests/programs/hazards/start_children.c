// The ways to start a child from a program with threads.
// Shows: fork with pthread_atfork, a child that starts threads, vfork, execl and execle with many arguments, posix_spawn,
//        system, popen, and exec that fails.
// True:  the handlers hold the mutex across fork, so the child finds it free and the counter whole; a failed exec leaves all as
//        it was.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 200, ARGUMENTS = 9 };

extern char **environ;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *work(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

static void before_fork(void) {
    pthread_mutex_lock(&m);
}

static void after_fork(void) {
    pthread_mutex_unlock(&m);
}

static int status_of(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int executed(int count, char **arguments) {
    if (count != ARGUMENTS + 1)
        return 2;
    for (int i = 1; i <= ARGUMENTS; i++)
        if (arguments[i][0] != 'a' || atoi(arguments[i] + 1) != i)
            return 3;
    const char *setting = getenv("SETTING");
    return setting == NULL ? 41 : strcmp(setting, "1") == 0 ? 42 : 4;
}

static int counting_child(void) {
    pthread_t thread;
    pthread_mutex_lock(&m);
    int before = counter;
    pthread_mutex_unlock(&m);
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    return counter == before + ROUNDS ? 7 : 1;
}

int main(int count, char **arguments) {
    if (count > 1)
        return executed(count, arguments);
    pthread_atfork(before_fork, after_fork, after_fork);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);

    pid_t child;
    for (int i = 0; i < 5; i++) {
        if ((child = fork()) == 0)
            exit(counting_child());
        if (status_of(child) != 7)
            return 1;
    }

    if ((child = vfork()) == 0) {
        execl("/proc/self/exe", arguments[0], "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", (char *)NULL);
        _exit(9);
    }
    if (status_of(child) != 41)
        return 2;
    char *environment[] = {"SETTING=1", NULL};
    if ((child = fork()) == 0) {
        execle("/proc/self/exe", arguments[0], "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", (char *)NULL, environment);
        _exit(9);
    }
    if (status_of(child) != 42)
        return 3;

    char *vector[] = {"true", NULL};
    if (posix_spawnp(&child, "true", NULL, NULL, vector, environ) != 0 || status_of(child) != 0)
        return 4;
    if (posix_spawn(&child, "/nonexistent", NULL, NULL, vector, environ) != ENOENT)
        return 5;
    if (execvp("nonexistent-program", vector) != -1 || errno != ENOENT)
        return 6;
    if (execlp("nonexistent-program", "a", "b", (char *)NULL) != -1 || errno != ENOENT)
        return 7;

    int status = system("exit 5");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
        return 8;
    char line[16] = "";
    FILE *output = popen("echo words", "r");
    if (output == NULL || fgets(line, sizeof line, output) == NULL || strcmp(line, "words\n") != 0 || pclose(output) != 0)
        return 9;

    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return counter == 2 * ROUNDS ? 0 : 10;
}
