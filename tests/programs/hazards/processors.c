/* Which processors it may use, asked in every way there is, and placed by itself. Prints counts, each as the kernel would say. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

static int counted(const char *how, int failed, cpu_set_t *set) {
    int count = failed ? -1 : CPU_COUNT(set);
    printf("%s %d\n", how, count);
    return count;
}

static int all(const char *who) {
    cpu_set_t set;
    printf("of %s:\n", who);
    CPU_ZERO(&set);
    counted("sched_getaffinity", sched_getaffinity(0, sizeof set, &set), &set);
    CPU_ZERO(&set);
    counted("by number", sched_getaffinity(syscall(SYS_gettid), sizeof set, &set), &set);
    CPU_ZERO(&set);
    counted("pthread_getaffinity_np", pthread_getaffinity_np(pthread_self(), sizeof set, &set), &set);
    CPU_ZERO(&set);
    int count = counted("syscall", syscall(SYS_sched_getaffinity, 0, sizeof set, &set) <= 0, &set);
    printf("online %ld %d\n", sysconf(_SC_NPROCESSORS_ONLN), get_nprocs());
    return count;
}

static void *thread(void *unused) {
    all("a thread");
    return unused;
}

/* Placed on each processor in turn, one of which may be where it was already. */
static void *placed(void *unused) {
    cpu_set_t may, set, told;
    sched_getaffinity(0, sizeof may, &may);
    int right = 1;
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, &may)) continue;
        CPU_ZERO(&set);
        CPU_SET(processor, &set);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
        sched_getaffinity(0, sizeof told, &told);
        right &= CPU_EQUAL(&set, &told) && sched_getcpu() == processor;
    }
    sched_setaffinity(0, sizeof may, &may);
    sched_getaffinity(0, sizeof told, &told);
    printf("placed %s\n", right && CPU_EQUAL(&may, &told) ? "right" : "WRONG");
    return unused;
}

static void run(const char *who, void *(*task)(void *)) {
    pthread_t made;
    printf("%s\n", who);
    pthread_create(&made, NULL, task, NULL);
    pthread_join(made, NULL);
}

static int kernel(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "Cpus_allowed_list", 17) == 0) fputs(line, stdout);
    }
    return fclose(status);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* What the kernel says by other means. */
    if (count > 1) return kernel();
    all("the initial thread");
    run("a thread", thread);
    run("a placed thread", placed);
    if (fork() == 0) {
        all("a child");
        run("a child's thread", placed);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    int status = system("echo system $(nproc)");
    char line[64] = "";
    FILE *stream = popen("nproc", "r");
    if (stream && fgets(line, sizeof line, stream)) printf("popen %s", line);
    if (stream) pclose(stream);
    if (fork() == 0) execl("/bin/sh", "sh", "-c", "echo exec $(nproc)", NULL);
    wait(NULL);
    return status;
}
