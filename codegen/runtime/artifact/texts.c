// The memory of the texts that a call makes. Each thread has blocks of its own, as it has an error text: they
// are used again by the thread's next call, and freed when the thread ends. Unloading the library frees those
// of its own thread alone, because it looks the same as the end of the process, where other threads may still
// be in calls. There is no lock and no list, so a fork leaves nothing half done.
#include "codegen/runtime/artifact/texts.h"

#include <pthread.h>
#include <stdlib.h>

enum { kSmallestBlock = 4096 };

// Its texts follow it.
struct Block {
  struct Block* previous;
  int64_t bytes, used;
};

struct ThreadTexts {
  struct Block* last;
  const char* problem;
  int ends;  // whether the key knows this thread
};

static _Thread_local struct ThreadTexts own_texts;

// The number of a key, whose destructor runs when a thread ends, plus one. Accessed atomically. Without a
// key, which a process has few of, the texts of threads that end stay.
static int64_t key_slot;
enum { kNoKey = 0, kUnloaded = -1 };

static void FreeTexts(struct ThreadTexts* texts) {
  for (struct Block* block = texts->last; block != NULL;) {
    struct Block* previous = block->previous;
    free(block);
    block = previous;
  }
  *texts = (struct ThreadTexts){0};
}

static void EndThread(void* texts) { FreeTexts(texts); }

__attribute__((destructor)) static void UnloadTexts(void) {
  const int64_t slot = __atomic_exchange_n(&key_slot, kUnloaded, __ATOMIC_ACQ_REL);
  if (slot > 0) pthread_key_delete((pthread_key_t)(slot - 1));
  FreeTexts(&own_texts);
}

// The slot with a key, where there can be one. Two threads may make one at once: the later one's is dropped.
static int64_t KeySlot(void) {
  int64_t slot = __atomic_load_n(&key_slot, __ATOMIC_ACQUIRE);
  pthread_key_t made;
  if (slot != kNoKey || pthread_key_create(&made, EndThread) != 0) return slot;
  const int64_t made_slot = (int64_t)made + 1;
  if (__atomic_compare_exchange_n(&key_slot, &slot, made_slot, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made_slot;
  pthread_key_delete(made);
  return slot;
}

static void FreeAtEnd(struct ThreadTexts* texts) {
  if (texts->ends) return;
  const int64_t slot = KeySlot();
  texts->ends = slot > 0 && pthread_setspecific((pthread_key_t)(slot - 1), texts) == 0;
}

char* MyccNewText(int64_t bytes) {
  struct ThreadTexts* texts = &own_texts;
  struct Block* block = texts->last;
  if (block == NULL || block->bytes - block->used < bytes) {
    const int64_t twice = block == NULL ? kSmallestBlock : 2 * block->bytes;
    const int64_t capacity = twice > bytes ? twice : bytes;
    struct Block* larger = malloc(sizeof *larger + (size_t)capacity);
    if (larger == NULL) {
      texts->problem = "no memory for its texts";
      return NULL;
    }
    *larger = (struct Block){block, capacity, 0};
    texts->last = block = larger;
    FreeAtEnd(texts);
  }
  char* text = (char*)(block + 1) + block->used;
  block->used += bytes;
  return text;
}

// The last block is the largest, and stays.
void MyccForgetTexts(void) {
  struct ThreadTexts* texts = &own_texts;
  texts->problem = NULL;
  struct Block* last = texts->last;
  if (last == NULL) return;
  struct ThreadTexts others = {last->previous, NULL, 0};
  FreeTexts(&others);
  last->previous = NULL;
  last->used = 0;
}

void MyccSetProblem(const char* problem) {
  if (own_texts.problem == NULL) own_texts.problem = problem;
}

const char* MyccTakeProblem(void) {
  const char* problem = own_texts.problem;
  own_texts.problem = NULL;
  return problem;
}

int MyccReadCharacter(const char* text, uint32_t* character) {
  const uint8_t* bytes = (const uint8_t*)text;
  static const uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  *character = bytes[0];
  if (bytes[0] < 0x80) return 1;
  const int count = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
  uint32_t read = bytes[0] & (0x7f >> count);
  int is_sound = bytes[0] >= 0xc0 && bytes[0] < 0xf8;
  for (int i = 1; i < count && is_sound; ++i) {
    is_sound = (bytes[i] & 0xc0) == 0x80;  // a NUL is not
    read = read << 6 | (bytes[i] & 0x3f);
  }
  if (!is_sound || read < kLeast[count] || read > 0x10ffff) {
    *character = kMyccNotUtf8 + bytes[0];
    return 1;
  }
  *character = read;
  return count;
}

char* MyccWriteCharacter(char* to, uint32_t character) {
  if (character < 0x80 || character >= kMyccNotUtf8) {
    *to++ = (char)(character & 0xff);
    return to;
  }
  const int count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (int i = count - 1; i > 0; --i) {
    to[i] = (char)(0x80 | (character & 0x3f));
    character >>= 6;
  }
  to[0] = (char)(0xff << (8 - count) | character);
  return to + count;
}
