// Functions of the C library write objects that another thread reads.
// Shows: a call that writes through its arguments is a write, and one that reads a string is a read.
// True:  a number, a text and a date are each written by a call in one thread and used by the other; nothing orders them.
// expect: race 17 24 co-enabled
// expect: race 18 25 co-enabled
// expect: race 19 26 co-enabled
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int number;
static char text[32];
static struct tm date;

static void *parse(void *unused) {
    sscanf("17 seventeen", "%d", &number);
    snprintf(text, sizeof text, "%d", 17);
    gmtime_r(&(time_t){17}, &date);
    return NULL;
}

static void *use(void *unused) {
    volatile int seen = number;
    seen = strcasecmp(text, "17") == 0;
    seen = date.tm_year;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, parse, NULL);
    pthread_create(&two, NULL, use, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d %s %d\n", number, text, date.tm_year);
    return 0;
}
