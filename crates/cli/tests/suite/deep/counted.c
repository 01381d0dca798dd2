#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

struct pair { int first; long second; };
static int numbers[64];
static double many[32];
static struct pair pairs[16];
static char text[40];
static size_t size = 30;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long fill(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) numbers[i] = i;
    for (int i = n - 1; i >= 0; i--) sum += numbers[i];
    for (size_t i = 0; i < size; i += 3) many[i] = (double)i;
    for (size_t i = 0; i < size; i++) many[i] += many[i + 1];
    for (int i = 0; i < 16; i++) pairs[i].second = pairs[i].first + i;
    for (char *at = text; at != text + sizeof text; at++) *at = 'x';
    for (int i = 0; i < n; i++)
        if (numbers[i] % 2) sum += i;
    int i = 0;
    do sum += numbers[i]; while (++i < n);
    return sum;
}

static void *task(void *argument) {
    pthread_mutex_lock(&lock);
    long sum = fill(50) + fill(1) + fill(0);
    pthread_mutex_unlock(&lock);
    *(long *)argument = sum;
    return NULL;
}

int main(void) {
    pthread_t one, other;
    long sums[2];
    pthread_create(&one, NULL, task, &sums[0]);
    pthread_join(one, NULL);
    pthread_create(&other, NULL, task, &sums[1]);
    pthread_join(other, NULL);
    printf("%ld %g %ld %c\n", sums[0] - sums[1], many[3], pairs[3].second, text[39]);
    return sums[0] != sums[1];
}
