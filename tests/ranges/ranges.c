// Small programs of accesses to ranges, drawn from their numbers, done by fibres of one thread with the detector of the process
// at work, and by a model that looks at each byte. Prints a line for each program of which the two differ, then the counts.
//
//   ranges FIRST COUNT [forget | tell]
//
// With `forget` the model does not know the first access of a program: the two have to differ. With `tell` each step is printed.
//
// A word of the shadow has four cells. One is the allocation's, so that three accesses to a word are remembered for sure; of a
// word that was accessed more often the detector may miss a race, but must not invent one. A program ends with its first race:
// a range is not looked at behind one.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *object);
void __tsan_release(void *object);
void __tsan_read_range(const void *address, unsigned long bytes);
void __tsan_write_range(void *address, unsigned long bytes);
void __tsan_read1(const void *address);
void __tsan_write1(void *address);
void __tsan_unaligned_read2(const void *address);
void __tsan_unaligned_read4(const void *address);
void __tsan_unaligned_read8(const void *address);
void __tsan_unaligned_read16(const void *address);
void __tsan_unaligned_write2(void *address);
void __tsan_unaligned_write4(void *address);
void __tsan_unaligned_write8(void *address);
void __tsan_unaligned_write16(void *address);
int __tsan_get_report_mop(void *report, unsigned long index, int *thread, void **address, int *size, int *write, int *atomic,
                          void **trace, unsigned long trace_size);

enum { FIBRES = 4, OBJECTS = 3, STEPS = 14, LARGEST = 20000, REMEMBERED = 3, FREE_LOOKS_AT = 1024, NO_SYNC = 1 };

// What a step does to one range.
struct part {
  unsigned from, bytes;
  int writes;
};

struct access {
  int fibre, writes;
};

static void *fibres[FIBRES];
static char objects[OBJECTS];
static uint64_t state;

// The model: of each byte which accesses touched it, of each fibre and object which accesses it knows.
static uint32_t touched[LARGEST];
static unsigned char times[LARGEST / 8 + 1];
static uint32_t known[FIBRES], released[OBJECTS];
static struct access accesses[2 * STEPS];
static int count;

// What the detector said since it was asked last.
static int reports, reporting_fibre, former_fibre;
static char *reported;

static char *block;
static unsigned size;

// SplitMix64.
static uint64_t draw(void) {
  uint64_t mixed = (state += 0x9e3779b97f4a7c15u);
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

static unsigned below(unsigned limit) { return (unsigned)(draw() % limit); }

void __tsan_on_report(void *report) {
  int size, write, atomic;
  void *trace[1], *address;
  if (reports++ == 0) {
    __tsan_get_report_mop(report, 0, &reporting_fibre, (void **)&reported, &size, &write, &atomic, trace, 1);
    __tsan_get_report_mop(report, 1, &former_fibre, &address, &size, &write, &atomic, trace, 1);
  }
}

static void run_as(int fibre, int *current) {
  if (*current != fibre) __tsan_switch_to_fiber(fibres[fibre], NO_SYNC);
  *current = fibre;
}

// Fibre 0 learns what all know, or all what it knows.
static void around(void) {
  for (int fibre = 1; fibre <= FIBRES; fibre++) __tsan_switch_to_fiber(fibres[fibre % FIBRES], 0);
}

static unsigned drawn_size(void) {
  switch (below(32)) {
    case 0: return 1 + below(LARGEST);
    case 1:
    case 2: return 1 + below(6000);
    case 3 ... 10: return 1 + below(1024);
    default: return 1 + below(96);
  }
}

static struct part range(int writes) {
  unsigned from = below(8) == 0 ? 0 : below(size), rest = size - from;
  unsigned bytes = 1 + below(below(2) && rest > 64 ? 64 : rest);
  return (struct part){from, bytes, writes};
}

static struct part sized(unsigned bytes, int writes) {
  return (struct part){bytes < size ? below(size - bytes + 1) : 0, bytes, writes};
}

// Does one step of a fibre. How many parts it has; 0: none that fits.
static int step(struct part *parts, int *freed) {
  unsigned action = below(16), bytes = 1u << below(5);
  int writes = (int)below(2);
  char *at;
  switch (action) {
    case 0 ... 4:
      parts[0] = range(writes);
      at = block + parts[0].from;
      if (writes) __tsan_write_range(at, parts[0].bytes);
      else __tsan_read_range(at, parts[0].bytes);
      return 1;
    case 5 ... 6:
      parts[0] = range(1);
      memset(block + parts[0].from, 'a', parts[0].bytes);
      return 1;
    case 7 ... 8:
      parts[0] = range(0);
      parts[1] = range(1);
      parts[0].bytes = parts[1].bytes = parts[0].bytes < parts[1].bytes ? parts[0].bytes : parts[1].bytes;
      memmove(block + parts[1].from, block + parts[0].from, parts[0].bytes);
      return 2;
    case 9:
      parts[0] = range(0);
      parts[1] = range(0);
      parts[0].bytes = parts[1].bytes = parts[0].bytes < parts[1].bytes ? parts[0].bytes : parts[1].bytes;
      return memcmp(block + parts[1].from, block + parts[0].from, parts[0].bytes) == 0 ? 2 : 0;
    case 10:
      parts[0] = range(0);
      return memchr(block + parts[0].from, 'b', parts[0].bytes) == NULL;
    case 11:
      if (below(4)) return 0;
      parts[0] = (struct part){0, size < FREE_LOOKS_AT ? size : FREE_LOOKS_AT, 1};
      *freed = 1;
      free(block);
      return 1;
    default:
      if (bytes > size) return 0;
      parts[0] = sized(bytes, writes);
      at = block + parts[0].from;
      switch (bytes) {
        case 1: (writes ? __tsan_write1(at) : __tsan_read1(at)); return 1;
        case 2: (writes ? __tsan_unaligned_write2(at) : __tsan_unaligned_read2(at)); return 1;
        case 4: (writes ? __tsan_unaligned_write4(at) : __tsan_unaligned_read4(at)); return 1;
        case 8: (writes ? __tsan_unaligned_write8(at) : __tsan_unaligned_read8(at)); return 1;
        default: (writes ? __tsan_unaligned_write16(at) : __tsan_unaligned_read16(at)); return 1;
      }
  }
}

// What the model says of a step.
struct verdict {
  int race;
  // The first word with a race that the detector has to find; -1: none.
  long sure;
};

// Accesses that a fibre's access to one byte races with.
static uint32_t races(int fibre, int writes, uint32_t former) {
  uint32_t found = 0;
  for (former &= ~known[fibre]; former; former &= former - 1) {
    int at = __builtin_ctz(former);
    if (writes || accesses[at].writes) found |= 1u << at;
  }
  return found;
}

static struct verdict look(int fibre, const struct part *parts, int length) {
  struct verdict verdict = {0, -1};
  for (int part = 0; part < length; part++) {
    unsigned end = parts[part].from + parts[part].bytes;
    for (unsigned at = parts[part].from; at < end; at++) {
      if (!touched[at] || !races(fibre, parts[part].writes, touched[at])) continue;
      verdict.race = 1;
      // The other part of the step may come first.
      if (times[at / 8] + length - 1 <= REMEMBERED && (verdict.sure < 0 || at / 8 < verdict.sure)) verdict.sure = at / 8;
    }
  }
  return verdict;
}

// Whether a word that was reported is one where the step races with that fibre.
static int is_there(int fibre, const struct part *parts, int length, long word, int former) {
  for (int part = 0; part < length; part++) {
    unsigned from = parts[part].from, end = from + parts[part].bytes;
    for (unsigned at = from; at < end; at++) {
      if (at / 8 != word) continue;
      for (uint32_t found = races(fibre, parts[part].writes, touched[at]); found; found &= found - 1) {
        if (accesses[__builtin_ctz(found)].fibre == former) return 1;
      }
    }
  }
  return 0;
}

static void enter(int fibre, const struct part *parts, int length, int forgotten) {
  for (int part = 0; part < length; part++, count++) {
    unsigned from = parts[part].from, end = from + parts[part].bytes;
    accesses[count] = (struct access){fibre, parts[part].writes};
    known[fibre] |= 1u << count;
    for (unsigned word = from / 8; word <= (end - 1) / 8; word++) times[word]++;
    for (unsigned at = from; at < end && !forgotten; at++) touched[at] |= 1u << count;
  }
}

static const char *difference(int fibre, const struct part *parts, int length, struct verdict verdict) {
  if (!reports) return verdict.sure >= 0 ? "a race is not reported" : NULL;
  if (!verdict.race) return "no race is reported as one";
  long word = (reported - block) / 8;
  if (reporting_fibre != fibre) return "another fibre is reported";
  if (!is_there(fibre, parts, length, word, former_fibre)) return "the race reported is not there";
  if (length == 1 && verdict.sure >= 0 && word > verdict.sure) return "the first race is not reported";
  return NULL;
}

struct counts {
  uint64_t programs, whole, racy, accesses, bytes;
};

// One program. Whether detector and model agree.
static int program(uint64_t number, int forget, int tell, struct counts *counts) {
  state = number * 0xd1342543de82ef95u;
  size = drawn_size();
  block = malloc(size);
  if (!block) abort();
  __tsan_write_range(block, size);
  for (unsigned at = 0; at < size; at++) block[at] = 'a';
  around();
  int current = 0, freed = 0, whole = 1, agree = 1, length = 2 + (int)below(STEPS - 1);
  count = 0;
  for (int number_of_step = 0; number_of_step < length && !freed; number_of_step++) {
    int fibre = (int)below(FIBRES), object = (int)below(OBJECTS);
    int order = (int)below(8);
    if (tell) printf("fibre %d, then %d, order %d, object %d\n", current, fibre, order, object);
    switch (order) {
      case 0 ... 4:
        // What was done before is ordered before what comes now, and through the object perhaps before other things.
        __tsan_release(&objects[object]);
        released[object] |= known[current];
        run_as(fibre, &current);
        __tsan_acquire(&objects[object]);
        known[fibre] |= released[object];
        break;
      case 5:
        run_as(fibre, &current);
        __tsan_release(&objects[object]);
        released[object] |= known[fibre];
        break;
      case 6:
        run_as(fibre, &current);
        __tsan_acquire(&objects[object]);
        known[fibre] |= released[object];
        break;
      default: run_as(fibre, &current);
    }
    struct part parts[2];
    reports = 0;
    int parts_done = step(parts, &freed);
    if (!parts_done) continue;
    struct verdict verdict = look(fibre, parts, parts_done);
    for (int part = 0; part < parts_done && tell; part++) {
      printf("  %s %u to %u\n", parts[part].writes ? "writes" : "reads", parts[part].from, parts[part].from + parts[part].bytes);
    }
    const char *differs = difference(fibre, parts, parts_done, verdict);
    counts->accesses += (uint64_t)parts_done;
    for (int part = 0; part < parts_done; part++) counts->bytes += parts[part].bytes;
    if (differs) {
      const struct part *last = &parts[parts_done - 1];
      const char *does = freed ? "which frees" : last->writes ? "which writes" : "which reads";
      printf("program %llu, step %d of fibre %d, %s bytes %u to %u of %u: %s\n", (unsigned long long)number,
             number_of_step, fibre, does, last->from, last->from + last->bytes, size, differs);
      agree = 0;
    }
    whole &= !verdict.race || verdict.sure >= 0;
    if (reports || differs) {
      counts->racy++;
      break;
    }
    enter(fibre, parts, parts_done, forget && count == 0);
  }
  run_as(0, &current);
  around();
  reports = 0;
  if (!freed) free(block);
  if (reports) {
    printf("program %llu: the end of its memory is reported as a race\n", (unsigned long long)number);
    agree = 0;
  }
  memset(known, 0, sizeof known);
  memset(released, 0, sizeof released);
  for (unsigned at = 0; at < size; at++) touched[at] = 0;
  for (unsigned word = 0; word <= size / 8; word++) times[word] = 0;
  counts->programs++;
  counts->whole += (uint64_t)whole;
  return agree;
}

int main(int count_of_arguments, char **arguments) {
  if (count_of_arguments < 3) return 2;
  uint64_t first = strtoull(arguments[1], NULL, 10), programs = strtoull(arguments[2], NULL, 10), differences = 0;
  int forget = count_of_arguments > 3 && strcmp(arguments[3], "forget") == 0;
  int tell = count_of_arguments > 3 && strcmp(arguments[3], "tell") == 0;
  struct counts counts = {0};
  fibres[0] = __tsan_get_current_fiber();
  for (int fibre = 1; fibre < FIBRES; fibre++) fibres[fibre] = __tsan_create_fiber(0);
  for (uint64_t number = first; number < first + programs; number++) differences += !program(number, forget, tell, &counts);
  printf("programs %llu whole %llu racy %llu accesses %llu bytes %llu differences %llu\n", (unsigned long long)counts.programs,
         (unsigned long long)counts.whole, (unsigned long long)counts.racy, (unsigned long long)counts.accesses,
         (unsigned long long)counts.bytes, (unsigned long long)differences);
  return 0;
}
